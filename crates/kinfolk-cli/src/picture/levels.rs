//! The condensed tree of levels as SVG.
//!
//! From bottom to top clusters merge. A cluster is as wide as it has rows and as tall as it lives, and darker the longer it
//! lives. Clusters narrower than [`NARROW`] are averaged, column by column. Beside it are the persistence of every cut and the
//! levels that are offered. Heights beyond which only one in two hundred rows merges are left out.
//!
//! Cost: O(N) and at most a few thousand shapes, grouped by tone.

use kinfolk::stages::{Branch, Level, Levels, branches};
use std::fmt::Write;

const WIDTH: f64 = 1180.0;
const HEIGHT: f64 = 680.0;
/// Left, right, top and bottom of the tree.
const TREE: [f64; 4] = [76.0, 806.0, 84.0, 616.0];
/// Left and right of the curve.
const CURVE: [f64; 2] = [822.0, 932.0];
/// The left of the names of levels, and the distance between two.
const NAMES: f64 = 956.0;
const NAME_HEIGHT: f64 = 36.0;
/// Narrower clusters are averaged.
const NARROW: f64 = 0.5;
/// From short lives to long ones.
const TONES: [&str; 8] =
    ["#dfe9f5", "#c6dbef", "#a6cbe6", "#7fb5da", "#559dcc", "#3282be", "#17649f", "#0b3f77"];
const DEFAULT: &str = "#d62728";
const INK: &str = "#222222";
const PALE: &str = "#777777";

/// Draws the tree.
pub fn draw_levels(levels: &Levels) -> String {
    let rows = levels.tree().rows();
    let branches = branches(levels.tree());
    let scale = Scale::of(levels, &branches);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"{INK}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let title = format!("{} rows, from fine to coarse", thousands(rows));
    text(&mut svg, [TREE[0], 32.0], "font-size=\"19\"", &title);
    let legend =
        "A cluster is as wide as it has rows, and as tall as it lives before it merges with another.";
    text(&mut svg, [TREE[0], 55.0], &format!("fill=\"{PALE}\""), legend);
    draw_axis(&mut svg, &scale);
    let longest = draw_tree(&mut svg, &branches, rows, &scale);
    draw_tones(&mut svg, longest);
    draw_curve(&mut svg, levels, &scale);
    draw_names(&mut svg, levels.levels(), &scale);
    svg.push_str("</svg>\n");
    svg
}

/// The heights that are shown.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(levels: &Levels, branches: &[Branch]) -> Self {
        let births = |branch: &Branch| (branch.birth, f64::from(branch.last_rows));
        let offered = || levels.levels().iter().map(|level| level.height);
        let [low, high] = [0.005, 0.995].map(|share| quantile(branches.iter().map(births), share));
        let low = offered().fold(low, f64::min);
        let high = offered().fold(high, f64::max);
        let margin = (0.06 * (high - low)).max(0.25);
        Scale { low: low - margin, high: high + margin }
    }

    fn y(&self, height: f64) -> f64 {
        let share = (height.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        TREE[3] - share * (TREE[3] - TREE[2])
    }
}

/// The value below which this share of the weight lies; 0 without values.
fn quantile(values: impl Iterator<Item = (f64, f64)>, share: f64) -> f64 {
    let mut values: Vec<(f64, f64)> = values.collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rest = share * values.iter().map(|value| value.1).sum::<f64>();
    let reached = values.iter().find(|value| {
        rest -= value.1;
        rest <= 0.0
    });
    reached.or(values.last()).map_or(0.0, |value| value.0)
}

fn draw_axis(svg: &mut String, scale: &Scale) {
    let [left, right, top, bottom] = TREE;
    let step = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
        .into_iter()
        .find(|step| (scale.high - scale.low) / step <= 14.0)
        .unwrap_or(50.0);
    let mut tick = (scale.low / step).ceil() * step;
    while tick <= scale.high {
        let y = scale.y(tick);
        let _ = writeln!(svg, "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#eeeeee\"/>");
        let sign = if tick > 0.0 { "+" } else { "" };
        let number = format!("{sign}{tick}").replace('-', "\u{2212}");
        text(svg, [left - 8.0, y + 4.5], &format!("text-anchor=\"end\" fill=\"{PALE}\""), &number);
        tick += step;
    }
    let middle = (top + bottom) / 2.0;
    let turned = format!("text-anchor=\"middle\" transform=\"rotate(-90 24 {middle})\"");
    text(svg, [24.0, middle], &turned, "height in octaves: fine \u{2190} 0 is the default \u{2192} coarse");
    text(
        svg,
        [(left + right) / 2.0, bottom + 22.0],
        "text-anchor=\"middle\"",
        "rows, those of one cluster together",
    );
}

/// Draws all branches and returns the life of the darkest tone.
fn draw_tree(svg: &mut String, branches: &[Branch], rows: usize, scale: &Scale) -> f64 {
    let life = |branch: &Branch| branch.death - branch.birth;
    let lives = branches.iter().map(|branch| (life(branch), f64::from(branch.last_rows)));
    let longest = quantile(lives, 0.95).max(1e-9);
    let tone = |life: f64| ((life / longest * TONES.len() as f64) as usize).min(TONES.len() - 1);
    let per_row = (TREE[1] - TREE[0]) / rows as f64;
    let mut shapes = [const { String::new() }; TONES.len()];
    let mut narrow = Narrow::default();
    let width = |branch: &Branch| per_row * f64::from(branch.last_rows);
    for branch in branches {
        let left = TREE[0] + per_row * f64::from(branch.left);
        let whole = branch.parent.map_or(f64::INFINITY, |parent| width(&branches[parent as usize]));
        let width = width(branch);
        if width < NARROW {
            // Parts of narrow branches are not shown.
            if whole >= NARROW {
                narrow.add(left, width, branch);
            }
            continue;
        }
        // A gap to the neighbour, where there is room for it.
        let gap = if width > 3.0 { 0.8 } else { 0.0 };
        let below = (per_row * f64::from(branch.first_rows) - gap).max(0.3);
        let (top, bottom) = (scale.y(branch.death), scale.y(branch.birth));
        let _ = write!(
            shapes[tone(life(branch))],
            "M{left:.2} {bottom:.1}V{top:.1}h{:.2}L{:.2} {bottom:.1}z",
            width - gap,
            left + below
        );
    }
    for ([left, right], [birth, death]) in narrow.columns() {
        let (top, bottom) = (scale.y(death), scale.y(birth));
        let _ =
            write!(shapes[tone(death - birth)], "M{left:.2} {bottom:.1}V{top:.1}H{right:.2}V{bottom:.1}z");
    }
    for (shape, tone) in shapes.iter().zip(TONES).filter(|(shape, _)| !shape.is_empty()) {
        let _ = writeln!(svg, "<path fill=\"{tone}\" d=\"{shape}\"/>");
    }
    longest
}

/// Narrow branches, averaged in columns of a pixel.
#[derive(Default)]
struct Narrow(std::collections::BTreeMap<i64, [f64; 3]>);

impl Narrow {
    fn add(&mut self, left: f64, width: f64, branch: &Branch) {
        let column = self.0.entry((left + width / 2.0).floor() as i64).or_default();
        for (sum, value) in column.iter_mut().zip([1.0, branch.birth, branch.death]) {
            *sum += width * value;
        }
    }

    /// From left to right, and mean birth and death; a column is as wide as what is in it.
    fn columns(&self) -> impl Iterator<Item = ([f64; 2], [f64; 2])> {
        self.0.iter().map(|(&at, &[width, births, deaths])| {
            ([at as f64, at as f64 + width.min(1.0)], [births / width, deaths / width])
        })
    }
}

fn draw_tones(svg: &mut String, longest: f64) {
    let (left, y, width) = (TREE[0] + 122.0, TREE[3] + 34.0, 22.0);
    let right = left + width * TONES.len() as f64;
    for (at, tone) in TONES.iter().enumerate() {
        let x = left + width * at as f64;
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"10\" fill=\"{tone}\"/>");
    }
    let name = format!("fill=\"{PALE}\" text-anchor=\"end\"");
    text(svg, [left - 8.0, y + 10.0], &name, "life of a cluster: 0");
    text(svg, [right + 8.0, y + 10.0], &format!("fill=\"{PALE}\""), &format!("{longest:.1} octaves or more"));
}

fn draw_curve(svg: &mut String, levels: &Levels, scale: &Scale) {
    let curve = levels.curve();
    let most = curve.iter().map(|point| point.1).fold(1e-9, f64::max);
    let x = |persistence: f64| CURVE[0] + (CURVE[1] - CURVE[0]) * persistence / most;
    // The greatest value of each line of pixels.
    let mut lines = std::collections::BTreeMap::<i64, f64>::new();
    for &(height, persistence) in curve.iter().filter(|point| (scale.low..=scale.high).contains(&point.0)) {
        let line = lines.entry(scale.y(height).round() as i64).or_default();
        *line = line.max(persistence);
    }
    let mut shape = String::new();
    let mut last = None;
    for (&y, &persistence) in lines.iter().rev() {
        // Between two merges it does not change.
        match last {
            Some(before) => drop(write!(shape, "L{before:.1} {y}L{:.1} {y}", x(persistence))),
            None => drop(write!(shape, "M{} {y}L{:.1} {y}", CURVE[0], x(persistence))),
        }
        last = Some(x(persistence));
    }
    if let Some((&y, _)) = lines.first_key_value() {
        let _ = writeln!(svg, "<path d=\"{shape}L{} {y}z\" fill=\"#e9e9e9\" stroke=\"#999999\"/>", CURVE[0]);
    }
    let middle = (CURVE[0] + CURVE[1]) / 2.0;
    text(svg, [middle, TREE[3] + 22.0], "text-anchor=\"middle\"", "persistence");
    let range = format!("0 to {most:.1} octaves");
    text(svg, [middle, TREE[3] + 44.0], &format!("text-anchor=\"middle\" fill=\"{PALE}\""), &range);
}

fn draw_names(svg: &mut String, levels: &[Level], scale: &Scale) {
    // From coarse to fine, pushed apart downwards, then upwards from the bottom.
    let mut at: Vec<f64> = levels.iter().rev().map(|level| scale.y(level.height)).collect();
    for i in 1..at.len() {
        at[i] = at[i].max(at[i - 1] + NAME_HEIGHT);
    }
    let mut limit = TREE[3] - 4.0;
    for y in at.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - NAME_HEIGHT;
    }
    for ((number, level), name) in levels.iter().enumerate().rev().zip(at) {
        let y = scale.y(level.height);
        let (colour, dashes, width) =
            if level.default { (DEFAULT, "", 2.0) } else { (INK, " stroke-dasharray=\"5 4\"", 1.0) };
        let (left, end) = (TREE[0], CURVE[1]);
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {y:.1}H{end}L{} {name:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}/>",
            NAMES - 6.0
        );
        let what = if level.default { ", the default" } else { "" };
        let first = format!("fill=\"{colour}\" font-weight=\"bold\"");
        text(svg, [NAMES, name], &first, &format!("level {number}{what}"));
        let clusters = if level.clusters == 1 { "cluster" } else { "clusters" };
        let more = format!("{} {clusters}, {:.2} octaves", thousands(level.clusters), level.persistence);
        text(svg, [NAMES, name + 15.0], &format!("fill=\"{PALE}\""), &more);
    }
}

fn text(svg: &mut String, [x, y]: [f64; 2], style: &str, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{text}</text>");
}

/// A number with commas.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinfolk::stages::MergeTree;

    #[test]
    fn every_level_is_marked_and_nothing_is_infinite() {
        // Two pairs that merge at -2 and -1.5, with each other at 3; a row that stays alone.
        let merges = vec![[0, 1], [2, 3], [5, 6]];
        let tree = MergeTree::from_parts(5, merges, vec![-2.0, -1.5, 3.0]).unwrap();
        let levels = Levels::of_tree(tree);
        let svg = draw_levels(&levels);
        for level in 0..levels.levels().len() {
            assert!(svg.contains(&format!("level {level}")), "{svg}");
        }
        assert!(svg.contains("5 rows, from fine to coarse") && svg.contains(", the default"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn sets_without_merges_have_a_picture() {
        for rows in [1, 3] {
            let svg = draw_levels(&Levels::of_tree(MergeTree::from_parts(rows, vec![], vec![]).unwrap()));
            assert!(svg.contains("level 0, the default") && !svg.contains("NaN"), "{svg}");
        }
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([7, 1234, 1_000_000].map(thousands), ["7", "1,234", "1,000,000"]);
    }
}
