//! One colour for each method, the same in every chart.
//!
//! From Okabe and Ito, "Color Universal Design" (2008): they can be told apart whatever colours an eye confuses.

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
