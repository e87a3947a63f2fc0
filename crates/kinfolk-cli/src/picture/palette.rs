//! One colour for each method, the same in every chart.
//!
//! From Okabe and Ito, "Color Universal Design" (2008), their yellow darkened for a white ground: they can be told apart
//! whatever colours an eye confuses.

pub const U_NUM: &str = "#8c8c8c";
/// The density tree, too: u_weight is its confidence.
pub const U_WEIGHT: &str = "#e69f00";
pub const S_AVG: &str = "#56b4e9";
pub const S_CENTER: &str = "#cc79a7";
/// s_nbr is what GCN-V learns unless told otherwise.
pub const GCN_V: &str = "#0072b2";
pub const GCN_V_REBUILT: &str = "#009e73";
pub const GCN_VE: &str = "#d55e00";
pub const ORACLE: &str = "#000000";

/// The colour of a method, and whether its lines are dashed and its dots hollow: there are more methods than colours.
pub fn of_method(name: &str) -> (&'static str, bool) {
    match name {
        "density" => (U_WEIGHT, false),
        "gcn-v" => (GCN_V, false),
        // Where GCN-E is asked about few rows its line covers that of GCN-V; both are to be seen.
        "gcn-ve" => (GCN_VE, true),
        "lgcn" => ("#a39500", false),
        "ltc" => ("#a39500", true),
        "kin" => ("#000000", false),
        "infomap" => ("#009e73", false),
        "hdbscan" => ("#56b4e9", false),
        "hac" => ("#cc79a7", false),
        "kmeans" => ("#8c8c8c", false),
        "minibatch-kmeans" => ("#8c8c8c", true),
        "dbscan" => ("#56b4e9", true),
        "dbscan-knn" => ("#0072b2", true),
        "meanshift" => ("#cc79a7", true),
        "spectral" => ("#e69f00", true),
        "aro" => ("#d55e00", false),
        "cdp" => ("#009e73", true),
        _ => ("#000000", true),
    }
}
