//! Computes the positions of the boxes of a graph, and the paths of the lines between them.
//!
//! A layered drawing, from left to right: each box is one column to the right of the last box that it waits for
//! (longest path). The order in a column is improved by barycentres. The heights are the least-squares positions that
//! keep that order. Made for compilations, up to a few hundred boxes. Knows sizes and edges only.

/// The size of every box: one size reads best for commands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spacing {
    pub(super) width: f32,
    pub(super) height: f32,
    /// The gap between columns, in which the lines and their names are.
    pub(super) column_gap: f32,
    /// The gap between the boxes of a column.
    pub(super) row_gap: f32,
}

/// A place in the drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f32,
    pub(super) y: f32,
}

/// The finished layout; its top left corner is at 0, 0.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) width: f32,
    pub(super) height: f32,
    /// The top left corner of every box.
    pub(super) boxes: Vec<Point>,
    /// The points on the route of each edge, in pairs: it curves from the first to the second of a pair, and is straight
    /// between pairs.
    pub(super) routes: Vec<Vec<(Point, Point)>>,
}

/// An edge that passes a column takes this share of a box's height.
const LANE: f32 = 0.3;
/// Sweeps over all columns; the order stops improving well before.
const SWEEPS: usize = 24;
/// How strongly a line that passes columns pulls itself straight.
const STRAIGHTNESS: f32 = 4.0;

/// A box, or the place where a long edge passes a column.
struct Cell {
    column: usize,
    height: f32,
    y: f32,
    left: Vec<usize>,
    right: Vec<usize>,
    passing: bool,
}

/// Place `count` boxes; `edges` are pairs of boxes, from left to right.
pub(super) fn lay_out(count: usize, edges: &[(usize, usize)], spacing: Spacing) -> Layout {
    let columns = columns_of(count, edges);
    let mut cells: Vec<Cell> = columns
        .iter()
        .map(|&column| Cell::new(column, spacing.height, false))
        .collect();
    let chains: Vec<Vec<usize>> = edges
        .iter()
        .map(|edge| thread(&mut cells, *edge, spacing))
        .collect();

    let depth = columns.iter().max().map_or(0, |last| last + 1);
    let mut order: Vec<Vec<usize>> = vec![Vec::new(); depth];
    for (cell, about) in cells.iter().enumerate() {
        order[about.column].push(cell);
    }
    untangle(&cells, &mut order);
    let height = stack(&mut cells, &order, spacing.row_gap);

    let step = spacing.width + spacing.column_gap;
    let x_of = |column: usize| column as f32 * step;
    let boxes = cells[..count]
        .iter()
        .map(|cell| Point {
            x: x_of(cell.column),
            y: cell.y - spacing.height / 2.0,
        })
        .collect();
    let width = if depth == 0 {
        0.0
    } else {
        x_of(depth - 1) + spacing.width
    };
    let routes = route(&cells, &chains, spacing, x_of);
    Layout {
        width,
        height,
        boxes,
        routes,
    }
}

impl Cell {
    fn new(column: usize, height: f32, passing: bool) -> Self {
        Self {
            column,
            height,
            y: 0.0,
            left: Vec::new(),
            right: Vec::new(),
            passing,
        }
    }
}

/// The column of every box: the length of the longest path to it. In a cycle some edges point left; they are drawn like
/// the others.
fn columns_of(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut waits = vec![0_usize; count];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    for &(from, to) in edges {
        waits[to] += 1;
        after[from].push(to);
    }
    let mut columns = vec![0; count];
    let mut placed = vec![false; count];
    let mut ready: Vec<usize> = (0..count).filter(|cell| waits[*cell] == 0).collect();
    loop {
        while let Some(cell) = ready.pop() {
            placed[cell] = true;
            for &next in &after[cell] {
                if placed[next] {
                    continue;
                }
                columns[next] = columns[next].max(columns[cell] + 1);
                waits[next] -= 1;
                if waits[next] == 0 {
                    ready.push(next);
                }
            }
        }
        // Whatever is left waits for itself: begin somewhere.
        match placed.iter().position(|done| !done) {
            Some(stuck) => ready.push(stuck),
            None => return columns,
        }
    }
}

/// Cut an edge into steps of one column; gives the cells it passes, ends included.
fn thread(cells: &mut Vec<Cell>, (from, to): (usize, usize), spacing: Spacing) -> Vec<usize> {
    let (first, last) = (cells[from].column, cells[to].column);
    let mut chain = vec![from];
    for column in first + 1..last {
        cells.push(Cell::new(column, spacing.height * LANE, true));
        chain.push(cells.len() - 1);
    }
    chain.push(to);
    if first < last {
        for pair in chain.windows(2) {
            cells[pair[0]].right.push(pair[1]);
            cells[pair[1]].left.push(pair[0]);
        }
    }
    chain
}

/// Reorder each column by the mean place of its neighbours, and keep the best order.
fn untangle(cells: &[Cell], order: &mut Vec<Vec<usize>>) {
    let mut best = order.clone();
    let mut fewest = crossings(cells, order);
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            break;
        }
        let rightwards = sweep % 2 == 0;
        for step in 1..order.len() {
            let column = if rightwards {
                step
            } else {
                order.len() - 1 - step
            };
            let beside = if rightwards { column - 1 } else { column + 1 };
            let place = places(&order[beside], cells.len());
            let mut keyed: Vec<(f32, usize)> = Vec::new();
            for (at, &cell) in order[column].iter().enumerate() {
                let near = if rightwards {
                    &cells[cell].left
                } else {
                    &cells[cell].right
                };
                let share = near.len() as f32;
                let sum: usize = near.iter().map(|other| place[*other]).sum();
                keyed.push((
                    if near.is_empty() {
                        at as f32
                    } else {
                        sum as f32 / share
                    },
                    cell,
                ));
            }
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            order[column] = keyed.into_iter().map(|(_, cell)| cell).collect();
        }
        let now = crossings(cells, order);
        if now < fewest {
            fewest = now;
            best.clone_from(order);
        }
    }
    *order = best;
}

fn places(column: &[usize], cells: usize) -> Vec<usize> {
    let mut place = vec![0; cells];
    for (at, &cell) in column.iter().enumerate() {
        place[cell] = at;
    }
    place
}

/// How often lines cross between neighbouring columns.
fn crossings(cells: &[Cell], order: &[Vec<usize>]) -> usize {
    let mut count = 0;
    for pair in order.windows(2) {
        let place = places(&pair[1], cells.len());
        let mut ends: Vec<usize> = Vec::new();
        for &cell in &pair[0] {
            let mut targets: Vec<_> = cells[cell].right.iter().map(|to| place[*to]).collect();
            targets.sort_unstable();
            count += targets
                .iter()
                .map(|target| ends.iter().filter(|end| *end > target).count())
                .sum::<usize>();
            ends.extend(targets);
        }
    }
    count
}

/// Give every cell its height, pulled towards its neighbours; returns the total.
fn stack(cells: &mut [Cell], order: &[Vec<usize>], gap: f32) -> f32 {
    for column in order {
        let mut y = 0.0;
        for &cell in column {
            cells[cell].y = y + cells[cell].height / 2.0;
            y += cells[cell].height + gap;
        }
    }
    for sweep in 0..SWEEPS {
        let pull = |cells: &[Cell], cell: usize| {
            let about = &cells[cell];
            // First each side alone, so that trees spread; both together at the end.
            let (left, right) = (sweep % 2 == 0 || sweep > 15, sweep % 2 == 1 || sweep > 15);
            let sides = [(left, &about.left), (right, &about.right)];
            let near = sides
                .iter()
                .filter(|side| side.0)
                .flat_map(|side| side.1.iter());
            let (mut sum, mut weight) = (0.0, 0.0);
            for &other in near {
                let both = about.passing && cells[other].passing;
                let strength = if both { STRAIGHTNESS } else { 1.0 };
                sum += cells[other].y * strength;
                weight += strength;
            }
            if weight > 0.0 {
                (sum / weight, weight)
            } else {
                (about.y, 0.1)
            }
        };
        for step in 0..order.len() {
            let column = &order[if sweep % 2 == 0 {
                step
            } else {
                order.len() - 1 - step
            }];
            let wanted: Vec<_> = column.iter().map(|cell| pull(cells, *cell)).collect();
            settle(cells, column, &wanted, gap);
        }
    }
    let top = cells
        .iter()
        .map(|cell| cell.y - cell.height / 2.0)
        .fold(f32::INFINITY, f32::min);
    let mut bottom = 0.0_f32;
    for cell in cells {
        cell.y -= top;
        bottom = bottom.max(cell.y + cell.height / 2.0);
    }
    bottom
}

/// Put a column as near as possible to where its cells want to be, in their order:
/// isotonic regression, by pooling neighbours that would overlap.
fn settle(cells: &mut [Cell], column: &[usize], wanted: &[(f32, f32)], gap: f32) {
    // After the space of each cell is subtracted, "no overlap" means "not decreasing".
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(column.len());
    let mut pools: Vec<(f32, f32, usize)> = Vec::new();
    for (at, &cell) in column.iter().enumerate() {
        if at > 0 {
            offset += (cells[column[at - 1]].height + cells[cell].height) / 2.0 + gap;
        }
        offsets.push(offset);
        let (y, weight) = wanted[at];
        let mut pool = (y - offset, weight, 1);
        while let Some(&last) = pools.last().filter(|last| last.0 > pool.0) {
            pools.pop();
            let weight = last.1 + pool.1;
            pool = (
                (last.0 * last.1 + pool.0 * pool.1) / weight,
                weight,
                last.2 + pool.2,
            );
        }
        pools.push(pool);
    }
    let levels = pools
        .iter()
        .flat_map(|pool| std::iter::repeat_n(pool.0, pool.2));
    for ((&cell, offset), level) in column.iter().zip(offsets).zip(levels) {
        cells[cell].y = level + offset;
    }
}

/// The route of every edge. Each edge leaves and reaches its boxes at a place of its own.
fn route(
    cells: &[Cell],
    chains: &[Vec<usize>],
    spacing: Spacing,
    x_of: impl Fn(usize) -> f32,
) -> Vec<Vec<(Point, Point)>> {
    let leaving = ports(cells, chains, spacing, |chain| (chain[0], chain[1]));
    let reaching = ports(cells, chains, spacing, |chain| {
        (chain[chain.len() - 1], chain[chain.len() - 2])
    });
    let way = |(edge, chain): (usize, &Vec<usize>)| {
        let last = chain.len() - 1;
        let pair = |at: usize| {
            let (from, to) = (&cells[chain[at]], &cells[chain[at + 1]]);
            let out = if at == 0 { leaving[edge] } else { 0.0 };
            let into = if at + 1 == last { reaching[edge] } else { 0.0 };
            let start = Point {
                x: x_of(from.column) + spacing.width,
                y: from.y + out,
            };
            (
                start,
                Point {
                    x: x_of(to.column),
                    y: to.y + into,
                },
            )
        };
        (0..last).map(pair).collect()
    };
    chains.iter().enumerate().map(way).collect()
}

/// How far from its box's middle each edge begins (or ends), by where it leads.
fn ports(
    cells: &[Cell],
    chains: &[Vec<usize>],
    spacing: Spacing,
    ends: impl Fn(&[usize]) -> (usize, usize),
) -> Vec<f32> {
    let mut by_box: Vec<Vec<usize>> = vec![Vec::new(); cells.len()];
    for (edge, chain) in chains.iter().enumerate() {
        by_box[ends(chain).0].push(edge);
    }
    let mut offsets = vec![0.0; chains.len()];
    for mut edges in by_box {
        let towards = |edge: &usize| cells[ends(&chains[*edge]).1].y;
        edges.sort_by(|a, b| towards(a).total_cmp(&towards(b)));
        let middle = (edges.len() as f32 - 1.0) / 2.0;
        let step = (spacing.height * 0.6 / edges.len() as f32).min(7.0);
        for (at, edge) in edges.into_iter().enumerate() {
            offsets[edge] = (at as f32 - middle) * step;
        }
    }
    offsets
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
