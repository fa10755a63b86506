//! Tests of the layout: no box over another, lines that go forward, any graph accepted.

use proptest::prelude::*;

use super::{Spacing, columns_of, crossings, lay_out};

const SPACING: Spacing = Spacing {
    width: 100.0,
    height: 40.0,
    column_gap: 60.0,
    row_gap: 10.0,
};

#[test]
fn a_chain_is_a_straight_line() {
    let layout = lay_out(3, &[(0, 1), (1, 2)], SPACING);
    assert_eq!(
        layout.boxes.iter().map(|at| at.x).collect::<Vec<_>>(),
        [0.0, 160.0, 320.0]
    );
    assert!(
        layout.boxes.iter().all(|at| at.y.abs() < 0.01),
        "{:?}",
        layout.boxes
    );
    assert_eq!((layout.width, layout.height), (420.0, 40.0));
}

#[test]
fn the_longest_way_decides_the_column() {
    assert_eq!(
        columns_of(4, &[(0, 1), (1, 2), (0, 2), (3, 2)]),
        [0, 1, 2, 0]
    );
}

#[test]
fn crossed_lines_are_untangled() {
    let layout = lay_out(4, &[(0, 3), (1, 2)], SPACING);
    let above = |a: usize, b: usize| layout.boxes[a].y < layout.boxes[b].y;
    assert_eq!(above(0, 1), above(3, 2));
}

#[test]
fn crossings_are_counted() {
    let mut cells: Vec<_> = [0, 0, 1, 1]
        .map(|column| super::Cell::new(column, 1.0, false))
        .into();
    cells[0].right = vec![3];
    cells[1].right = vec![2];
    assert_eq!(crossings(&cells, &[vec![0, 1], vec![2, 3]]), 1);
    assert_eq!(crossings(&cells, &[vec![0, 1], vec![3, 2]]), 0);
}

#[test]
fn nothing_is_laid_out_as_nothing() {
    let layout = lay_out(0, &[], SPACING);
    assert_eq!((layout.width, layout.boxes.len()), (0.0, 0));
}

proptest! {
    #[test]
    fn boxes_never_overlap(
        count in 1_usize..30,
        edges in prop::collection::vec((0_usize..30, 0_usize..30), 0..60),
    ) {
        let edges: Vec<_> =
            edges.into_iter().filter(|(a, b)| a != b && *a < count && *b < count).collect();
        let layout = lay_out(count, &edges, SPACING);
        prop_assert_eq!(layout.routes.len(), edges.len());
        for (at, a) in layout.boxes.iter().enumerate() {
            prop_assert!(a.x >= 0.0 && a.y >= -0.01);
            prop_assert!(a.x + 100.0 <= layout.width + 0.01);
            prop_assert!(a.y + 40.0 <= layout.height + 0.5, "{} {}", a.y, layout.height);
            for b in &layout.boxes[at + 1..] {
                prop_assert!((a.x - b.x).abs() >= 100.0 || (a.y - b.y).abs() >= 49.9);
            }
        }
    }
}
