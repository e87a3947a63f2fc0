//! Charts as SVG: lines over a common axis, side by side, and bars with their values.

use std::fmt::Write;

/// Width and height of what is within the axes of a line chart.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 280.0;
/// Room for titles above, for numbers to the left, and for numbers and a name below the axes.
const TOP: f64 = 40.0;
const LEFT: f64 = 62.0;
const BELOW: f64 = 54.0;
const RIGHT: f64 = 24.0;
/// Height of a line of the legend.
const LEGEND: f64 = 26.0;
/// The approximate width of a letter in charts; fonts are not measured.
pub(super) const LETTER: f64 = 7.6;

/// A line of a chart.
pub struct Line {
    /// Its name in the legend; lines of the same name share an entry.
    pub name: String,
    pub colour: &'static str,
    pub dashed: bool,
    pub points: Vec<(f64, f64)>,
    /// A place on the line to draw a ring at.
    pub ring: Option<(f64, f64)>,
}

/// Lines over a common axis.
pub struct LineChart {
    pub title: String,
    /// What the horizontal axis shows.
    pub axis: String,
    pub lines: Vec<Line>,
}

/// Two values of one thing, side by side.
pub struct Bars {
    pub name: String,
    pub colour: &'static str,
    pub values: [f64; 2],
}

/// Draws charts side by side over one legend; `ring` explains the rings, if there are any.
pub fn draw_lines(charts: &[LineChart], ring: &str) -> String {
    let step = LEFT + WIDTH + RIGHT;
    let width = charts.len() as f64 * step;
    let (legend, legend_height) = legend(charts, ring, width);
    let mut svg = start(width, TOP + HEIGHT + BELOW + legend_height);
    for (at, chart) in charts.iter().enumerate() {
        draw_axes_and_lines(&mut svg, chart, at as f64 * step + LEFT);
    }
    let _ = writeln!(svg, "<g transform=\"translate(0,{})\">\n{legend}</g>", TOP + HEIGHT + BELOW);
    svg.push_str("</svg>\n");
    svg
}

/// Writing to a string cannot fail, so results of `write!` are dropped everywhere below.
fn draw_axes_and_lines(svg: &mut String, chart: &LineChart, left: f64) {
    let points = || chart.lines.iter().flat_map(|line| &line.points).copied();
    let (xs, ys) = (ticks(points().map(|p| p.0)), ticks(points().map(|p| p.1)));
    let range = |ticks: &[f64]| (ticks[0], ticks[ticks.len() - 1]);
    let share = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
    let x = |value: f64| left + WIDTH * share(value, range(&xs));
    let y = |value: f64| TOP + HEIGHT * (1.0 - share(value, range(&ys)));
    let bottom = TOP + HEIGHT;
    text(svg, left, 24.0, "start", &chart.title);
    for (&tick, label) in ys.iter().zip(tick_labels(&ys)) {
        let at = y(tick);
        let _ = writeln!(
            svg,
            "<path d=\"M{left:.1} {at:.1}h{WIDTH}\" stroke=\"#{}\" fill=\"none\"/>",
            if tick == ys[0] { "555" } else { "ddd" }
        );
        text(svg, left - 8.0, at + 5.0, "end", &label);
    }
    for (&tick, label) in xs.iter().zip(tick_labels(&xs)) {
        let _ = writeln!(svg, "<path d=\"M{:.1} {bottom:.1}v5\" stroke=\"#555\" fill=\"none\"/>", x(tick));
        text(svg, x(tick), bottom + 20.0, "middle", &label);
    }
    text(svg, left + WIDTH / 2.0, bottom + 42.0, "middle", &chart.axis);
    for line in &chart.lines {
        let path: Vec<String> =
            line.points.iter().map(|&(h, v)| format!("{:.1} {:.1}", x(h), y(v))).collect();
        let _ = writeln!(svg, "<path d=\"M{}\" {}/>", path.join("L"), stroke(line.colour, line.dashed));
        if let Some((h, v)) = line.ring {
            let _ = writeln!(svg, "{}", ring_at(x(h), y(v), line.colour));
        }
    }
}

/// The legend and its height: an entry for each name, as many beside each other as there is room for.
fn legend(charts: &[LineChart], ring: &str, width: f64) -> (String, f64) {
    let mut lines: Vec<&Line> = Vec::new();
    for line in charts.iter().flat_map(|chart| &chart.lines) {
        if lines.iter().all(|known| known.name != line.name) {
            lines.push(line);
        }
    }
    let mut entries: Vec<(&str, String)> = Vec::new();
    for line in &lines {
        let sample = format!("<path d=\"M0 0h34\" {}/>", stroke(line.colour, line.dashed));
        entries.push((&line.name, sample));
    }
    if charts.iter().flat_map(|chart| &chart.lines).any(|line| line.ring.is_some()) {
        entries.push((ring, ring_at(17.0, 0.0, "#555")));
    }
    let (mut svg, mut x, mut y) = (String::new(), LEFT, LEGEND / 2.0);
    for (name, sample) in entries {
        let taken = 44.0 + name.chars().count() as f64 * LETTER;
        if x > LEFT && x + taken > width {
            (x, y) = (LEFT, y + LEGEND);
        }
        let _ = writeln!(svg, "<g transform=\"translate({x:.1},{y:.1})\">{sample}</g>");
        text(&mut svg, x + 42.0, y + 5.0, "start", name);
        x += taken + 20.0;
    }
    (svg, y + LEGEND)
}

/// Draws values from 0 to 100 as bars, a pair for each name; `measures` says what the two of a pair are.
pub fn draw_bars(title: &str, measures: [&str; 2], bars: &[Bars]) -> String {
    const BAR: f64 = 15.0;
    const GROUP: f64 = 2.0 * BAR + 14.0;
    let longest = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
    let left = 24.0 + longest as f64 * LETTER;
    let bottom = TOP + LEGEND + bars.len() as f64 * GROUP;
    // Values are written to the right of their bars.
    let mut svg = start(left + WIDTH + 70.0, bottom + 34.0);
    text(&mut svg, 14.0, 24.0, "start", title);
    let mut x = left;
    for (measure, opacity) in measures.iter().zip(OPACITIES) {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{}\" width=\"24\" height=\"12\" fill=\"#555\" fill-opacity=\"{opacity}\"/>",
            TOP + 2.0
        );
        text(&mut svg, x + 32.0, TOP + 13.0, "start", measure);
        x += 60.0 + measure.chars().count() as f64 * LETTER;
    }
    let top = TOP + LEGEND;
    for tick in [0.0, 20.0, 40.0, 60.0, 80.0, 100.0] {
        let at = left + WIDTH * tick / 100.0;
        let _ = writeln!(svg, "<path d=\"M{at:.1} {top:.1}V{bottom:.1}\" stroke=\"#ddd\" fill=\"none\"/>");
        text(&mut svg, at, bottom + 20.0, "middle", &format!("{tick}"));
    }
    for (group, bar) in bars.iter().enumerate() {
        let y = top + group as f64 * GROUP + 7.0;
        text(&mut svg, left - 10.0, y + BAR + 5.0, "end", &bar.name);
        for (at, (value, opacity)) in bar.values.iter().zip(OPACITIES).enumerate() {
            let (y, width) = (y + at as f64 * BAR, WIDTH * value / 100.0);
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{}\" fill=\"{}\" \
                 fill-opacity=\"{opacity}\"/>",
                BAR - 1.0,
                bar.colour
            );
            text(&mut svg, left + width + 6.0, y + 12.0, "start", &format!("{value:.1}"));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Opacity of the first and the second of two bars, which have the same colour.
const OPACITIES: [f64; 2] = [1.0, 0.45];

pub(super) fn start(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    )
}

/// Text with a white edge, readable over lines.
pub(super) fn text(svg: &mut String, x: f64, y: f64, anchor: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#222\" stroke=\"white\" stroke-width=\"3\" \
         paint-order=\"stroke\">{content}</text>"
    );
}

fn stroke(colour: &str, dashed: bool) -> String {
    let dashes = if dashed { " stroke-dasharray=\"7 5\"" } else { "" };
    format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.2\"{dashes}")
}

fn ring_at(x: f64, y: f64, colour: &str) -> String {
    format!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" fill=\"white\" fill-opacity=\"0.6\" stroke=\"{colour}\" \
         stroke-width=\"2.2\"/>"
    )
}

/// Four to eight round numbers that span the values.
pub(super) fn ticks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let (mut low, mut high) = values.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        // No values at all: an empty chart.
        (low, high) = (0.0, 1.0);
    } else if high - low <= 1e-9 * high.abs().max(1e-9) {
        (low, high) = (low - 0.5, low + 0.5);
    }
    let rough = (high - low) / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|&s| s >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step + 1e-6).floor(), (high / step - 1e-6).ceil());
    (first as i64..=last as i64).map(|i| i as f64 * step).collect()
}

/// With as many decimals as the steps between them need.
pub(super) fn tick_labels(ticks: &[f64]) -> Vec<String> {
    let step = ticks.get(1).map_or(1.0, |second| second - ticks[0]);
    let decimals = (-(step * 1.001).log10().floor()).max(0.0) as usize;
    ticks.iter().map(|tick| format!("{tick:.decimals$}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_span_the_values() {
        let of = |values: &[f64]| tick_labels(&ticks(values.iter().copied()));
        assert_eq!(of(&[0.0, 0.95]), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(of(&[41.0, 88.0]), ["40", "50", "60", "70", "80", "90"]);
        assert_eq!(of(&[7.0, 7.0]).len(), 7);
        assert_eq!(of(&[]).len(), 6);
    }

    #[test]
    fn the_legend_names_each_line_once() {
        let line = |name: &str| Line {
            name: name.to_owned(),
            colour: "#000000",
            dashed: false,
            points: vec![(0.0, 1.0), (1.0, 2.0)],
            ring: Some((0.0, 1.0)),
        };
        let chart = |lines| LineChart { title: "F".to_owned(), axis: "tau".to_owned(), lines };
        let svg = draw_lines(&[chart(vec![line("a & b"), line("c")]), chart(vec![line("c")])], "chosen");
        for (what, times) in [("a &amp; b", 1), (">c<", 1), ("chosen", 1), ("<circle", 4), (">tau<", 2)] {
            assert_eq!(svg.matches(what).count(), times, "{what}");
        }
    }

    #[test]
    fn every_bar_has_its_value() {
        let bars = [Bars { name: "one".to_owned(), colour: "#000000", values: [12.34, 100.0] }];
        let svg = draw_bars("title", ["P", "B"], &bars);
        assert!(svg.contains(">12.3<") && svg.contains(">100.0<") && svg.contains(">one<"));
    }
}
