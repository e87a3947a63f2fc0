//! The figures of the paper, to be shown beside ours: pairwise F, then BCubed F, in percent.

/// The parts that the columns of [`TABLE1`] have, of 584,000 rows each.
pub const PARTS: [u32; 5] = [1, 3, 5, 7, 9];

/// Table 1, MS-Celeb-1M: each row at 584K, 1.74M, 2.89M, 4.05M and 5.21M unlabelled images.
const TABLE1: [(&str, [[f64; 2]; 5]); 9] = [
    ("kmeans", [[79.21, 81.23], [73.04, 75.2], [69.83, 72.34], [67.9, 70.57], [66.47, 69.42]]),
    ("hac", [[70.63, 70.46], [54.4, 69.53], [11.08, 68.62], [1.4, 67.69], [0.37, 66.96]]),
    ("dbscan", [[67.93, 67.17], [63.41, 66.53], [52.5, 66.26], [45.24, 44.87], [44.94, 44.74]]),
    ("aro", [[13.6, 17.0], [8.78, 12.42], [7.3, 10.96], [6.86, 10.5], [6.35, 10.01]]),
    ("cdp", [[75.02, 78.7], [70.75, 75.82], [69.51, 74.58], [68.62, 73.62], [68.06, 72.92]]),
    ("lgcn", [[78.68, 84.37], [75.83, 81.61], [74.29, 80.11], [73.7, 79.33], [72.99, 78.6]]),
    ("ltc", [[85.66, 85.52], [82.41, 83.01], [80.32, 81.1], [78.98, 79.84], [77.87, 78.86]]),
    ("gcn-v-paper", [[87.14, 85.82], [83.49, 82.63], [81.51, 81.05], [79.97, 79.92], [78.77, 79.09]]),
    ("gcn-ve-paper", [[87.93, 86.09], [84.04, 82.84], [82.1, 81.24], [80.45, 80.09], [79.3, 79.25]]),
];

/// Identities of Table 2.
pub const IDENTITIES: f64 = 3_991.0;

/// Table 2, DeepFashion: clusters and both F.
const TABLE2: [(&str, usize, [f64; 2]); 11] = [
    ("kmeans", 3_991, [32.86, 53.77]),
    ("hac", 17_410, [22.54, 48.77]),
    ("dbscan", 14_350, [25.07, 53.23]),
    ("meanshift", 8_435, [31.61, 56.73]),
    ("spectral", 2_504, [29.02, 46.4]),
    ("aro", 10_504, [26.03, 53.01]),
    ("cdp", 6_622, [28.28, 57.83]),
    ("lgcn", 10_137, [28.85, 58.91]),
    ("ltc", 9_246, [29.14, 59.11]),
    ("gcn-v-paper", 4_998, [33.07, 57.26]),
    ("gcn-ve-paper", 6_079, [38.47, 60.06]),
];

/// The number of rows of so many parts, as the paper writes it.
pub fn rows(parts: u32) -> &'static str {
    let names = ["584K", "1.74M", "2.89M", "4.05M", "5.21M"];
    PARTS.iter().position(|&known| known == parts).map_or("-", |at| names[at])
}

/// Whether a row of the paper is this row of ours. Networks with published weights have the figures of the paper too.
fn is(known: &str, row: &str) -> bool {
    known == row
        || known.strip_suffix("-paper").is_some_and(|name| row.strip_suffix("-published") == Some(name))
}

/// Both F of a row of Table 1 on this many parts, if the paper has it.
pub fn table1(row: &str, parts: u32) -> Option<[f64; 2]> {
    let column = PARTS.iter().position(|&known| known == parts)?;
    TABLE1.iter().find(|known| is(known.0, row)).map(|known| known.1[column])
}

/// Clusters and both F of a row of Table 2, if the paper has it.
pub fn table2(row: &str) -> Option<(usize, [f64; 2])> {
    TABLE2.iter().find(|known| is(known.0, row)).map(|known| (known.1, known.2))
}

/// Both F as a cell of a table: `87.1 / 85.8`, or a dash.
pub fn cell(f: Option<[f64; 2]>) -> String {
    f.map_or_else(|| "-".to_owned(), |[pairwise, bcubed]| format!("{pairwise:.1} / {bcubed:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_paper_is_a_row_of_the_tables() {
        let rows: Vec<&str> = super::super::methods::names().collect();
        let known = TABLE1.iter().map(|known| known.0).chain(TABLE2.iter().map(|known| known.0));
        for row in known {
            assert!(rows.contains(&row), "{row}");
        }
        assert_eq!(cell(table1("gcn-v-paper", 9)), "78.8 / 79.1");
        assert_eq!(table2("gcn-ve-published"), table2("gcn-ve-paper"));
        assert_eq!((table1("kin", 1), table1("kmeans", 2), table2("kin")), (None, None, None));
    }
}
