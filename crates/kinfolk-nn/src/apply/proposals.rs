//! Cluster proposals: the super-vertices of LTC (Section 3.2 of Yang et al., CVPR 2019).
//!
//! For each of several settings, super-vertices are the connected components along edges of at least `th` to the `k` nearest
//! neighbours, split at higher thresholds while they are too large ([`kinfolk::stages::limited_components`]). Super-vertices are then
//! merged iteratively by the similarity of their mean rows into larger proposals, up to `MERGED` at a time. The proposals of all
//! settings form one pool, in which they overlap; duplicates are removed.
//!
//! Cost: O(N K) for each setting, and a search for the neighbours of its super-vertices. Memory: 4 N bytes for each setting and
//! level.

use kinfolk::stages::{SizeLimit, limited_components};
use kinfolk::{Embeddings, Error, KnnGraph, KnnParams, Progress, Quiet, Result, knn_graph};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The maximum number of super-vertices that are merged into one.
const MERGED: usize = 8;

/// Neighbours of a super-vertex.
const NEIGHBOURS: usize = 10;

/// One setting for super-vertices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProposalSetting {
    /// Nearest neighbours of a row whose edges count; fewer where the graph has fewer.
    pub k: usize,
    /// Edges of less similarity are left out.
    pub th: f32,
}

/// Parameters of proposals.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposalParams {
    /// The settings, all of which are applied.
    pub settings: Vec<ProposalSetting>,
    /// The maximum size of a super-vertex. Default 300 rows.
    pub limit: SizeLimit,
    /// The minimum size of a proposal. Default 3.
    pub min_size: usize,
    /// How often super-vertices are merged into larger ones. Default 1.
    pub levels: usize,
}

impl Default for ProposalParams {
    /// With thresholds as published for MS-Celeb-1M; training chooses those of its set.
    fn default() -> Self {
        let settings = [0.55, 0.6, 0.65, 0.7, 0.75].map(|th| ProposalSetting { k: 80, th });
        ProposalParams { settings: settings.to_vec(), limit: SizeLimit::default(), min_size: 3, levels: 1 }
    }
}

impl ProposalParams {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        let wrong = |name, expected, found: String| Err(Error::Parameter { field: name, expected, found });
        if self.settings.is_empty() {
            return wrong("settings", "at least 1", "0".to_owned());
        }
        for setting in &self.settings {
            if setting.k == 0 {
                return wrong("k", "at least 1", "0".to_owned());
            }
            if !(-1.0..=1.0).contains(&setting.th) {
                return wrong("th", "a similarity from -1 to 1", setting.th.to_string());
            }
        }
        if self.min_size < 2 {
            return wrong("min_size", "at least 2", self.min_size.to_string());
        }
        self.limit.check()
    }
}

/// Overlapping sets of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposals {
    ends: Vec<usize>,
    members: Vec<u32>,
}

impl Proposals {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The rows of one, ascending.
    pub fn members(&self, at: usize) -> &[u32] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.members[start..self.ends[at]]
    }

    /// Every proposal.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|at| self.members(at))
    }

    /// Adds one, whose rows ascend.
    pub fn push(&mut self, members: &[u32]) {
        self.members.extend_from_slice(members);
        self.ends.push(self.members.len());
    }
}

/// Makes the proposals of all settings.
pub fn proposals(
    embeddings: &Embeddings,
    graph: &KnnGraph,
    params: &ProposalParams,
    progress: &dyn Progress,
) -> Result<Proposals> {
    params.check()?;
    if graph.len() != embeddings.len() {
        let (place, what) = ("LTC".to_owned(), "vertices of the graph (one per embedding)".to_owned());
        return Err(Error::Length { place, what, expected: embeddings.len(), found: graph.len() });
    }
    let mut all = Proposals::default();
    let mut seen = HashSet::new();
    let mut add = |found: &[Vec<u32>]| {
        for members in found {
            let mut hasher = DefaultHasher::new();
            members.hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                all.push(members);
            }
        }
    };
    progress.begin("proposals", (params.settings.len() * (1 + params.levels)) as u64);
    for setting in &params.settings {
        progress.check()?;
        let names = limited_components(graph.len(), edges(graph, setting), &params.limit, &Quiet(progress))?;
        let mut found = groups(&names);
        found.retain(|members| members.len() >= params.min_size);
        progress.advance(1);
        add(&found);
        for _ in 0..params.levels {
            found = joined(embeddings, found, setting.th, &params.limit, &Quiet(progress))?;
            progress.advance(1);
            add(&found);
        }
    }
    Ok(all)
}

fn edges(graph: &KnnGraph, setting: &ProposalSetting) -> Vec<(u32, u32, f32)> {
    let of = |i: usize| {
        let (ids, similarities) = graph.neighbours(i);
        let count = similarities.partition_point(|&similarity| similarity >= setting.th).min(setting.k);
        // Rounding may leave a copy's similarity above 1.
        ids[..count].iter().zip(similarities).map(move |(&j, &similarity)| (i as u32, j, similarity.min(1.0)))
    };
    (0..graph.len()).flat_map(of).collect()
}

/// What has the same name, in the order of first members.
fn groups(names: &[u32]) -> Vec<Vec<u32>> {
    let mut place = vec![u32::MAX; names.len()];
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for (i, &name) in names.iter().enumerate() {
        let place = &mut place[name as usize];
        if *place == u32::MAX {
            *place = groups.len() as u32;
            groups.push(Vec::new());
        }
        groups[*place as usize].push(i as u32);
    }
    groups
}

/// Merges super-vertices whose means are similar. The others do not change.
fn joined(
    embeddings: &Embeddings,
    parts: Vec<Vec<u32>>,
    th: f32,
    limit: &SizeLimit,
    progress: &dyn Progress,
) -> Result<Vec<Vec<u32>>> {
    if parts.len() < 2 {
        return Ok(parts);
    }
    let mut means = Vec::with_capacity(parts.len() * embeddings.dim());
    for members in &parts {
        let mut sum = vec![0.0f64; embeddings.dim()];
        for &i in members {
            sum.iter_mut().zip(embeddings.row(i as usize)).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        // Opposite rows have no mean direction; the first then stands for them.
        match sum.iter().map(|x| x * x).sum::<f64>() > 1e-12 {
            true => means.extend(sum.iter().map(|&x| x as f32)),
            false => means.extend_from_slice(embeddings.row(members[0] as usize)),
        }
    }
    let means = Embeddings::from_rows(means, embeddings.dim(), "super-vertices")?;
    let knn = KnnParams { k: NEIGHBOURS.min(parts.len() - 1), ..KnnParams::default() };
    let graph = knn_graph(&means, &knn, progress)?.0;
    let merging = SizeLimit { max_size: MERGED, ..limit.clone() };
    let setting = ProposalSetting { k: NEIGHBOURS, th };
    let names = limited_components(parts.len(), edges(&graph, &setting), &merging, progress)?;
    let join = |group: Vec<u32>| {
        let mut members: Vec<u32> = group.iter().flat_map(|&part| &parts[part as usize]).copied().collect();
        members.sort_unstable();
        members
    };
    Ok(groups(&names).into_iter().map(join).collect())
}
