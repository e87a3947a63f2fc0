//! Clusters of a reachability plot by the steepness of its slopes, the xi method of OPTICS.
//!
//! Section 4.3 of Ankerst et al. (1999). A place of the plot is steep downward if the value after it is at most 1 - xi
//! times its own, and steep upward if its own is at most 1 - xi times the value after it. Steep places with at most
//! `min` places between them that do not go the other way are one steep area. A cluster begins in a steep downward
//! area and ends in a steep upward area, and all values between them are at most 1 - xi times those at both ends. Its
//! end is moved back to the last place whose predecessor is in the cluster (Schubert and Gertz, 2018). Clusters are
//! nested; the smallest ones are the result. Details that the papers leave open are as in scikit-learn.
//!
//! Cost: O(N) and, for each steep upward area, the steep downward areas that are still open: few, because a high value
//! between them closes them.

/// What is called steep, and the smallest cluster.
pub(crate) struct Steepness {
    pub xi: f64,
    /// The most places of a steep area that are not steep, one after the other.
    pub min: usize,
    pub min_cluster_size: usize,
}

/// The cluster of each place of a reachability plot, -1 for noise. `before` has the place of the predecessor of each
/// place.
pub(crate) fn xi_clusters(plot: &[f64], before: &[Option<u32>], steepness: &Steepness) -> Vec<i64> {
    finest(plot.len(), &nested(plot, before, steepness))
}

/// The smallest clusters, of a list in which no cluster comes before one that it contains.
fn finest(places: usize, clusters: &[(usize, usize)]) -> Vec<i64> {
    let mut labels = vec![-1; places];
    // Clusters that end in a later steep area come later, and those of one area by descending start. A cluster thus
    // contains an earlier one exactly if it begins before the end of the last that was taken.
    let mut free = 0;
    for (label, &(start, end)) in clusters.iter().enumerate() {
        if start >= free {
            labels[start..=end].fill(label as i64);
            free = end + 1;
        }
    }
    labels
}

/// A steep downward area.
struct Descent {
    start: usize,
    end: usize,
    /// The highest value since its end.
    highest: f64,
}

/// All clusters as first and last place, small ones before those that contain them.
fn nested(plot: &[f64], before: &[Option<u32>], steepness: &Steepness) -> Vec<(usize, usize)> {
    let least = 1.0 - steepness.xi;
    let n = plot.len();
    let at = |place: usize| if place < n { plot[place] } else { f64::INFINITY };
    // Ratios of two zeros and of two infinities are not numbers and neither up nor down.
    let ratio = |place: usize| plot[place] / at(place + 1);
    let (up, down) = (|place: usize| ratio(place) < 1.0, |place: usize| ratio(place) > 1.0);
    let steep_up = |place: usize| ratio(place) <= least;
    let steep_down = |place: usize| ratio(place) >= 1.0 / least;
    let mut descents: Vec<Descent> = Vec::new();
    let mut clusters = Vec::new();
    let mut highest: f64 = 0.0;
    let mut place = 0;
    while place < n {
        highest = highest.max(plot[place]);
        let descends = steep_down(place);
        if !descends && !steep_up(place) {
            place += 1;
            continue;
        }
        descents.retain_mut(|descent| {
            descent.highest = descent.highest.max(highest);
            highest.is_finite() && highest <= plot[descent.start] * least
        });
        let start = place;
        let end = if descends {
            area_end(n, start, steepness.min, steep_down, up)
        } else {
            area_end(n, start, steepness.min, steep_up, down)
        };
        if descends {
            descents.push(Descent { start, end, highest: 0.0 });
        } else {
            let found = descents.iter().rev().filter_map(|descent| {
                let ascent = (start, end);
                let (first, last) = ends(descent, ascent, least, at)?;
                let (first, last) = corrected(plot, before, first, last)?;
                let large = last - first + 1 >= steepness.min_cluster_size;
                (large && first <= descent.end && last >= start).then_some((first, last))
            });
            clusters.extend(found);
        }
        place = end + 1;
        highest = at(place);
    }
    clusters
}

/// The last steep place of the area that begins at `start`.
fn area_end(
    places: usize,
    start: usize,
    min: usize,
    steep: impl Fn(usize) -> bool,
    opposite: impl Fn(usize) -> bool,
) -> usize {
    let (mut end, mut level) = (start, 0);
    for place in start..places {
        if steep(place) {
            (end, level) = (place, 0);
        } else {
            level += 1;
            if opposite(place) || level > min {
                break;
            }
        }
    }
    end
}

/// The cluster between a descent and an ascent, whose ends are equally high as far as the slopes allow (Definition 11).
fn ends(
    descent: &Descent,
    ascent: (usize, usize),
    least: f64,
    at: impl Fn(usize) -> f64,
) -> Option<(usize, usize)> {
    let (mut start, mut end) = (descent.start, ascent.1);
    let (left, right) = (at(start), at(end + 1));
    if right * least < descent.highest {
        return None;
    }
    if left * least >= right {
        while start < descent.end && at(start + 1) > right {
            start += 1;
        }
    } else if right * least >= left {
        while end > ascent.0 && at(end - 1) > left {
            end -= 1;
        }
    }
    Some((start, end))
}

/// Moves the end back to a place whose predecessor is in the cluster, or that is lower than the start.
fn corrected(plot: &[f64], before: &[Option<u32>], start: usize, mut end: usize) -> Option<(usize, usize)> {
    while start < end {
        let inside = before[end].is_some_and(|place| (start..end).contains(&(place as usize)));
        if inside || plot[start] > plot[end] {
            return Some((start, end));
        }
        end -= 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares every cluster with the labels so far.
    fn slow_finest(places: usize, clusters: &[(usize, usize)]) -> Vec<i64> {
        let mut labels = vec![-1; places];
        for (label, &(start, end)) in clusters.iter().enumerate() {
            if labels[start..=end].iter().all(|&label| label == -1) {
                labels[start..=end].fill(label as i64);
            }
        }
        labels
    }

    /// Plots of few different values, copies and unreachable places among them, with any earlier place as predecessor.
    fn plots() -> impl Strategy<Value = (Vec<f64>, Vec<Option<u32>>)> {
        prop::collection::vec((0u8..10, 0u32..1000), 1..80).prop_map(|places| {
            let value = |v: u8| if v == 9 { f64::INFINITY } else { f64::from(v) / 8.0 };
            let mut plot: Vec<f64> = places.iter().map(|&(v, _)| value(v)).collect();
            plot[0] = f64::INFINITY;
            let earlier = |(at, &(_, place)): (u32, &(u8, u32))| Some(place.checked_rem(at)).flatten();
            let before = (0..).zip(&places).map(earlier).collect();
            (plot, before)
        })
    }

    proptest! {
        #[test]
        fn clusters_are_nested_and_the_finest_are_taken(
            (plot, before) in plots(), xi in 1u8..9, min in 2usize..6, size in 2usize..8
        ) {
            let steepness = Steepness { xi: f64::from(xi) / 10.0, min, min_cluster_size: size };
            let clusters = nested(&plot, &before, &steepness);
            for &(start, end) in &clusters {
                prop_assert!(end - start + 1 >= size && end < plot.len());
                // Values inside are below both ends; the first and the last place belong to the slopes.
                let after = plot.get(end + 1).copied().unwrap_or(f64::INFINITY);
                prop_assert!(plot[start..=end].iter().skip(1).all(|&v| v <= plot[start].max(after)));
            }
            prop_assert_eq!(finest(plot.len(), &clusters), slow_finest(plot.len(), &clusters));
        }
    }

    #[test]
    fn two_valleys_of_different_depth_and_a_wall() {
        let plot = [f64::INFINITY, 0.1, 0.1, 0.1, 0.9, 0.5, 0.5, 0.5, 0.9, f64::INFINITY];
        let before: Vec<Option<u32>> = (0..10u32).map(|at| at.checked_sub(1)).collect();
        let steepness = Steepness { xi: 0.05, min: 2, min_cluster_size: 3 };
        let labels = xi_clusters(&plot, &before, &steepness);
        assert_eq!(labels[..4], [labels[0]; 4]);
        assert_eq!(labels[4..8], [labels[4]; 4]);
        assert!(labels[0] >= 0 && labels[4] >= 0 && labels[0] != labels[4], "{labels:?}");
    }
}
