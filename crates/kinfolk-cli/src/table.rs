//! Plain tables on stdout.

use kinfolk::metrics::Scores;

/// Prints rows under headings; the first column to the left, the others to the right.
pub fn print(headings: &[&str], rows: &[Vec<String>]) {
    let width = |c: usize| {
        let cells = rows.iter().map(|row| row[c].chars().count());
        cells.chain([headings[c].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(c, (cell, &width))| match c {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    };
    line(headings.to_vec());
    line(
        widths
            .iter()
            .map(|&w| &"------------------------------------------------------------"[..w.min(60)])
            .collect(),
    );
    for row in rows {
        line(row.iter().map(String::as_str).collect());
    }
}

/// The same as Markdown.
pub fn markdown(headings: &[impl AsRef<str>], rows: &[Vec<String>]) -> String {
    // A bar within a cell would end it.
    let line = |cells: Vec<&str>| {
        cells.iter().fold("|".to_owned(), |line, cell| line + " " + &cell.replace('|', "\\|") + " |") + "\n"
    };
    let ruler = (0..headings.len()).map(|c| if c == 0 { "---|" } else { "---:|" });
    let mut text = line(headings.iter().map(AsRef::as_ref).collect());
    text += &format!("|{}\n", ruler.collect::<String>());
    rows.iter().for_each(|row| text += &line(row.iter().map(String::as_str).collect()));
    text
}

/// Headings for [`scores`], after the first column.
pub const SCORE_HEADINGS: [&str; 10] =
    ["clusters", "singletons", "largest", "pair P", "pair R", "pair F", "B³ P", "B³ R", "B³ F", "NMI"];

/// One row of scores, in percent.
pub fn scores(name: &str, scores: &Scores) -> Vec<String> {
    let percent = |v: f64| format!("{:.2}", 100.0 * v);
    let (p, b) = (scores.pairwise, scores.bcubed);
    let mut row = vec![name.to_owned()];
    row.extend([scores.clusters, scores.singletons, scores.largest].map(|c| c.to_string()));
    row.extend([p.precision, p.recall, p.f, b.precision, b.recall, b.f, scores.nmi].map(percent));
    row
}
