//! Colours of what the ablations compare; methods have their own in the registry.
//!
//! From Okabe and Ito, "Color Universal Design" (2008), with a darker yellow for a white background. People with colour
//! vision deficiencies can distinguish them.

pub const U_NUM: &str = "#8c8c8c";
/// The density tree, too: u_weight is its confidence.
pub const U_WEIGHT: &str = "#e69f00";
pub const S_AVG: &str = "#56b4e9";
pub const S_CENTER: &str = "#cc79a7";
/// s_nbr is what GCN-V learns by default.
pub const GCN_V: &str = "#0072b2";
pub const GCN_V_REBUILT: &str = "#009e73";
pub const GCN_VE: &str = "#d55e00";
pub const ORACLE: &str = "#000000";
