//! The order of rows by their lists.

use super::kernel::PANEL;
use crate::values::Values;
use std::ops::Range;

/// Which rows are in which list. Within the search a row is known by its position in the order of the lists.
pub(super) struct Layout {
    /// The row at each position.
    pub order: Values<u32>,
    /// The position of the first row of each list, and at the end N.
    pub starts: Values<u32>,
}

impl Layout {
    /// From the list of each row; within a list rows are in order.
    pub fn of(list_of: &[u32], lists: usize) -> Self {
        let mut starts = vec![0u32; lists + 1];
        list_of.iter().for_each(|&list| starts[list as usize + 1] += 1);
        (0..lists).for_each(|list| starts[list + 1] += starts[list]);
        let mut next = starts.clone();
        let mut order = vec![0; list_of.len()];
        for (row, &list) in (0..).zip(list_of) {
            let next = &mut next[list as usize];
            order[*next as usize] = row;
            *next += 1;
        }
        Layout { order: order.into(), starts: starts.into() }
    }

    /// The positions of the rows of some lists.
    pub fn positions(&self, lists: Range<usize>) -> Range<usize> {
        self.starts[lists.start] as usize..self.starts[lists.end] as usize
    }

    /// The position of each row.
    pub fn position_of(&self) -> Vec<u32> {
        let mut position_of = vec![0; self.order.len()];
        self.order.iter().zip(0..).for_each(|(&row, position)| position_of[row as usize] = position);
        position_of
    }

    /// The list of the row at a position.
    pub fn list_at(&self, position: u32) -> usize {
        // The last that starts at or before it; lists without rows start where the next one does.
        self.starts.partition_point(|&start| start <= position) - 1
    }

    /// Puts the rows at some positions into `rows`.
    pub fn rows_at(&self, positions: &[u32], rows: &mut [u32]) {
        rows.iter_mut().zip(positions).for_each(|(row, &position)| *row = self.order[position as usize]);
    }

    /// The first panel of each list, and at the end the number of panels.
    pub fn first_panels(&self) -> Vec<usize> {
        let panels = |range: &[u32]| ((range[1] - range[0]) as usize).div_ceil(PANEL);
        let mut first_panels = vec![0; self.starts.len()];
        for (list, range) in self.starts.windows(2).enumerate() {
            first_panels[list + 1] = first_panels[list] + panels(range);
        }
        first_panels
    }

    /// Ranges of lists that have about `task_rows` rows together.
    pub fn tasks(&self, task_rows: usize) -> Vec<Range<usize>> {
        let mut tasks = Vec::new();
        let mut first = 0;
        for list in 1..self.starts.len() {
            let rows = (self.starts[list] - self.starts[first]) as usize;
            if rows >= task_rows || list + 1 == self.starts.len() {
                tasks.push(first..list);
                first = list;
            }
        }
        tasks
    }
}
