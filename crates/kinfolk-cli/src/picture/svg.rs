//! Scatter plots as SVG, side by side over the same map.

use std::fmt::Write;

/// Width and height of a panel.
const SIDE: f32 = 460.0;
const GAP: f32 = 20.0;
const TITLE: f32 = 34.0;

/// One coloured view of the map.
pub struct Panel<'a> {
    pub title: String,
    /// The group of each point; groups below 0 are grey.
    pub groups: &'a [i64],
}

/// Draws each panel over the same points.
pub fn draw(at: &[[f32; 2]], panels: &[Panel]) -> String {
    let (width, height) = (GAP + panels.len() as f32 * (SIDE + GAP), TITLE + SIDE + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"15\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let place = fit(at);
    // Writing to a string cannot fail.
    for (p, panel) in panels.iter().enumerate() {
        let left = GAP + p as f32 * (SIDE + GAP);
        let _ = writeln!(svg, "<text x=\"{left}\" y=\"22\" fill=\"#222\">{}</text>", panel.title);
        let _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{TITLE}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#ccc\"/>"
        );
        for (point, &group) in at.iter().zip(panel.groups) {
            let [x, y] = place(point);
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.7\" fill=\"{}\"/>",
                left + x,
                TITLE + y,
                colour(group)
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Maps points into the panel, leaving a margin; a few points far out do not shrink the rest.
fn fit(at: &[[f32; 2]]) -> impl Fn(&[f32; 2]) -> [f32; 2] {
    const MARGIN: f32 = 12.0;
    let range = |axis: usize| {
        let mut values: Vec<f32> = at.iter().map(|p| p[axis]).collect();
        values.sort_unstable_by(f32::total_cmp);
        let skip = values.len() / 500;
        (values[skip], values[values.len() - 1 - skip])
    };
    let (x, y) = (range(0), range(1));
    move |point| {
        let scale = |v: f32, (low, high): (f32, f32)| {
            let share = (v - low) / (high - low).max(1e-6);
            MARGIN + share.clamp(0.0, 1.0) * (SIDE - 2.0 * MARGIN)
        };
        [scale(point[0], x), scale(point[1], y)]
    }
}

/// Colours that differ between groups in hue and in lightness, so that they can be distinguished without hue.
fn colour(group: i64) -> String {
    if group < 0 {
        return "#bbbbbb".to_owned();
    }
    // The golden angle spreads any number of hues evenly.
    let hue = (group as f64 * 137.508) % 360.0;
    let lightness = [38, 52, 66][group as usize % 3];
    format!("hsl({hue:.0},70%,{lightness}%)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_drawn_in_every_panel() {
        let at = [[0.0, 0.0], [1.0, 5.0], [2.0, -3.0]];
        let panel = |title: &str, groups| Panel { title: title.to_owned(), groups };
        let svg = draw(&at, &[panel("truth", &[0, 0, 1]), panel("found", &[0, 1, -1])]);
        assert_eq!(svg.matches("<circle").count(), 6);
        assert!(svg.contains("truth") && svg.contains("#bbbbbb"));
    }
}
