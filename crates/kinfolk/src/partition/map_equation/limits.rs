//! Limits of moves: pairs of vertices that are never in one module, and colours of which a module has at most one.
//!
//! Both hold in the partition that a search begins with, so it is enough to check every move. Colours stand for many pairs: a
//! hundred named groups would be thousands of pairs of vertices.
//!
//! Cost: nothing for networks without limits; else 12 bytes for each vertex, and for a vertex with pairs as many looks as it has.

use std::collections::HashMap;

/// What surrounds a network.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// How often modules are entered that are not in the network.
    pub outside: f64,
    pub limits: Option<&'a Limits>,
}

impl Surroundings<'_> {
    /// Nothing.
    pub const NONE: Self = Self { outside: 0.0, limits: None };
}

/// No colour.
const NONE: u32 = u32::MAX;

/// The limits of the vertices of a network.
pub(super) struct Limits {
    /// The vertices that may not be in the module of a vertex; vertices without any are not listed.
    apart: HashMap<u32, Vec<u32>>,
    /// The colour of each vertex.
    colours: Vec<u32>,
}

/// The colour of a module, and how many of its vertices have it.
#[derive(Clone, Copy)]
pub(super) struct Coloured {
    colour: u32,
    vertices: u32,
}

impl Limits {
    pub fn new(apart: &[[u32; 2]], colours: &[Option<u32>]) -> Self {
        let mut of_vertex: HashMap<u32, Vec<u32>> = HashMap::new();
        for &[a, b] in apart {
            of_vertex.entry(a).or_default().push(b);
            of_vertex.entry(b).or_default().push(a);
        }
        Self { apart: of_vertex, colours: colours.iter().map(|colour| colour.unwrap_or(NONE)).collect() }
    }

    /// Those of modules, where `modules[v]`, below `count`, is the module of vertex v.
    pub fn coarsen(&self, modules: &[u32], count: usize) -> Self {
        let mut colours = vec![NONE; count];
        for (&colour, &m) in self.colours.iter().zip(modules).filter(|(colour, _)| **colour != NONE) {
            colours[m as usize] = colour;
        }
        let mut apart: HashMap<u32, Vec<u32>> = HashMap::new();
        for (&v, others) in &self.apart {
            let others = others.iter().map(|&other| modules[other as usize]);
            apart.entry(modules[v as usize]).or_default().extend(others);
        }
        apart.values_mut().for_each(|others| {
            others.sort_unstable();
            others.dedup();
        });
        Self { apart, colours }
    }

    /// The colours of the modules; there may be as many modules as vertices.
    pub fn colours_of(&self, modules: &[u32]) -> Vec<Coloured> {
        let mut coloured = vec![Coloured { colour: NONE, vertices: 0 }; modules.len()];
        for (&colour, &m) in self.colours.iter().zip(modules).filter(|(colour, _)| **colour != NONE) {
            coloured[m as usize] = Coloured { colour, vertices: coloured[m as usize].vertices + 1 };
        }
        coloured
    }

    /// Whether vertex `v` may move to the module `to`.
    pub fn allow(&self, v: usize, to: u32, modules: &[u32], coloured: &[Coloured]) -> bool {
        let (own, there) = (self.colours[v], coloured[to as usize]);
        let same_colour = own == NONE || there.vertices == 0 || there.colour == own;
        same_colour
            && self
                .apart
                .get(&(v as u32))
                .is_none_or(|others| others.iter().all(|&other| modules[other as usize] != to))
    }

    /// Counts a move.
    pub fn moved(&self, v: usize, from: u32, to: u32, coloured: &mut [Coloured]) {
        let colour = self.colours[v];
        if colour != NONE {
            coloured[from as usize].vertices -= 1;
            coloured[to as usize] = Coloured { colour, vertices: coloured[to as usize].vertices + 1 };
        }
    }
}
