//! Dots over a logarithmic axis, each with its name beside it.

use super::chart::{LETTER, start, text, tick_labels, ticks};
use std::fmt::Write;

const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 540.0;
const TOP: f64 = 40.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 30.0;
const BELOW: f64 = 56.0;
/// Of a dot, and of a name.
const RADIUS: f64 = 5.5;
const TALL: f64 = 15.0;

/// A dot.
pub struct Dot {
    pub name: String,
    pub colour: &'static str,
    pub hollow: bool,
    /// Above 0: its place on the logarithmic axis.
    pub x: f64,
    pub y: f64,
}

/// Dots over a common axis.
pub struct Scatter {
    pub title: String,
    /// What the horizontal axis shows.
    pub axis: String,
    pub dots: Vec<Dot>,
    /// Dots that a line joins, by their numbers.
    pub joined: Vec<Vec<usize>>,
}

/// An occupied rectangle: left, top, right, bottom.
type Box4 = [f64; 4];

/// Draws charts side by side.
pub fn draw_scatter(charts: &[Scatter]) -> String {
    let step = LEFT + WIDTH + RIGHT;
    let mut svg = start(charts.len() as f64 * step, TOP + HEIGHT + BELOW);
    for (at, chart) in charts.iter().enumerate() {
        draw_one(&mut svg, chart, at as f64 * step + LEFT);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Writing to a string cannot fail, so results of `write!` are dropped.
fn draw_one(svg: &mut String, chart: &Scatter, left: f64) {
    text(svg, left, 24.0, "start", &chart.title);
    if chart.dots.is_empty() {
        text(svg, left + WIDTH / 2.0, TOP + HEIGHT / 2.0, "middle", "nothing ended in time");
        return;
    }
    let logs = || chart.dots.iter().map(|dot| dot.x.max(1e-6).log10());
    let (low, high) = logs().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    let (low, high) = ((low - 0.1).floor(), (high + 0.1).ceil());
    let ys = ticks(chart.dots.iter().map(|dot| dot.y));
    let (bottom_y, top_y) = (ys[0], ys[ys.len() - 1]);
    let x = |value: f64| left + WIDTH * (value.max(1e-6).log10() - low) / (high - low);
    let y = |value: f64| TOP + HEIGHT * (1.0 - (value - bottom_y) / (top_y - bottom_y));
    let bottom = TOP + HEIGHT;
    for (&tick, label) in ys.iter().zip(tick_labels(&ys)) {
        let colour = if tick == ys[0] { "555" } else { "ddd" };
        let at = y(tick);
        let _ = writeln!(svg, "<path d=\"M{left:.1} {at:.1}h{WIDTH}\" stroke=\"#{colour}\" fill=\"none\"/>");
        text(svg, left - 8.0, at + 5.0, "end", &label);
    }
    for power in low as i32..=high as i32 {
        let at = x(10f64.powi(power));
        let _ =
            writeln!(svg, "<path d=\"M{at:.1} {TOP}V{:.1}\" stroke=\"#ddd\" fill=\"none\"/>", bottom + 5.0);
        let decimals = (-power).max(0) as usize;
        text(svg, at, bottom + 20.0, "middle", &format!("{:.decimals$}", 10f64.powi(power)));
    }
    text(svg, left + WIDTH / 2.0, bottom + 42.0, "middle", &chart.axis);
    let places: Vec<(f64, f64)> = chart.dots.iter().map(|dot| (x(dot.x), y(dot.y))).collect();
    for line in &chart.joined {
        let [first, others @ ..] = &line[..] else { continue };
        let (x, y) = places[*first];
        let mut path = format!("M{x:.1} {y:.1}");
        others.iter().for_each(|&i| path += &format!("L{:.1} {:.1}", places[i].0, places[i].1));
        let colour = chart.dots[*first].colour;
        let _ =
            writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-dasharray=\"4 4\"/>");
    }
    for (dot, (x, y)) in chart.dots.iter().zip(&places) {
        let fill = if dot.hollow { "none" } else { dot.colour };
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{RADIUS}\" fill=\"{fill}\" stroke=\"{}\" stroke-width=\"2.2\"/>",
            dot.colour
        );
    }
    let names: Vec<&str> = chart.dots.iter().map(|dot| dot.name.as_str()).collect();
    let frame = [left, TOP, left + WIDTH, bottom];
    for ((name, at), &(x, y)) in names.iter().zip(place_names(&names, &places, frame)).zip(&places) {
        // A line leads to a name that is far from its dot.
        let (near_x, middle) = (x.clamp(at[0], at[2]), (at[1] + at[3]) / 2.0);
        if (near_x - x).hypot(middle - y) > 3.0 * RADIUS + TALL / 2.0 {
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {y:.1}L{near_x:.1} {middle:.1}\" stroke=\"#999\" fill=\"none\"/>"
            );
        }
        text(svg, at[0], at[3] - 3.5, "start", name);
    }
}

/// A box for each name that covers neither dots nor other names, as near to its dot as there is room.
fn place_names(names: &[&str], places: &[(f64, f64)], frame: Box4) -> Vec<Box4> {
    let reach = RADIUS + 2.0;
    let mut taken: Vec<Box4> =
        places.iter().map(|&(x, y)| [x - reach, y - reach, x + reach, y + reach]).collect();
    let mut found = Vec::new();
    for (name, &(x, y)) in names.iter().zip(places) {
        // Short names may be of wide letters only.
        let wide = name.chars().count() as f64 * LETTER + 5.0;
        let right = x + reach + 2.0;
        // Beside the dot, then above and below in increasing steps.
        let mut tries = vec![(right, y - TALL / 2.0), (x - reach - 2.0 - wide, y - TALL / 2.0)];
        for step in 0..30 {
            let away = reach + f64::from(step) * 6.0;
            for across in [x - wide / 2.0, right, x - wide] {
                tries.extend([(across, y - away - TALL), (across, y + away)]);
            }
        }
        let boxes = tries.iter().map(|&(a, b)| [a, b, a + wide, b + TALL]);
        let fits = |b: &Box4| {
            let within = b[0] >= frame[0] && b[1] >= frame[1] && b[2] <= frame[2] + RIGHT && b[3] <= frame[3];
            within && taken.iter().all(|t| b[2] <= t[0] || t[2] <= b[0] || b[3] <= t[1] || t[3] <= b[1])
        };
        let fallback = [right, y - TALL / 2.0, right + wide, y + TALL / 2.0];
        let place = boxes.into_iter().find(fits).unwrap_or(fallback);
        taken.push(place);
        found.push(place);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_dots_in_one_place_do_not_overlap() {
        let names = ["one", "another", "a third", "a fourth"];
        let places = [(100.0, 100.0), (102.0, 101.0), (98.0, 99.0), (101.0, 97.0)];
        let found = place_names(&names, &places, [0.0, 0.0, 400.0, 400.0]);
        for (i, a) in found.iter().enumerate() {
            for b in &found[i + 1..] {
                assert!(b[2] <= a[0] || a[2] <= b[0] || b[3] <= a[1] || a[3] <= b[1], "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn every_dot_is_drawn_and_named() {
        let dot = |name: &str, x| Dot { name: name.to_owned(), colour: "#000000", hollow: false, x, y: 50.0 };
        let dots = vec![dot("fast", 0.01), dot("slow", 100.0)];
        let chart =
            |dots| Scatter { title: "F".to_owned(), axis: "seconds".to_owned(), dots, joined: vec![] };
        let svg = draw_scatter(&[chart(dots), chart(vec![])]);
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains(">fast<") && svg.contains(">0.01<") && svg.contains(">100<"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
