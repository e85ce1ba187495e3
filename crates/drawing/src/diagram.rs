//! Diagrams of boxes and arrows, for the documentation.

use std::fmt::Write as _;

use crate::markup::{escape, px};
use crate::style;

/// A diagram of boxes in a grid, and of arrows between them.
#[derive(Clone, Debug)]
pub struct Diagram {
    /// The title.
    pub title: String,
    /// A text description for screen readers.
    pub description: String,
    /// The boxes, in reading order.
    pub shapes: Vec<Shape>,
    /// The arrows between them.
    pub arrows: Vec<Arrow>,
    /// The distance of the boxes' centres from column to column and from row to row, in pixels.
    pub pitch: (u32, u32),
    /// The width of a box in pixels.
    pub width: u32,
}

/// A box.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The name that arrows refer to, shown as the first line.
    pub name: String,
    /// The lines below the first.
    pub lines: Vec<String>,
    /// The column in the grid, from 0 at the left.
    pub column: u32,
    /// The row in the grid, from 0 at the top.
    pub row: u32,
}

/// An arrow. It is not drawn if one of its boxes does not exist.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// The name of the box where it begins.
    pub from: String,
    /// The name of the box where it ends.
    pub to: String,
    /// The lines of the label at its middle.
    pub lines: Vec<String>,
}

const MARGIN: u32 = 20;
const HEAD: u32 = 44;
const LINE: u32 = 16;

/// The distance from the centre line of each of two arrows in opposite directions.
const ARROW_OFFSET: f64 = 18.0;

/// The diagram as a self-contained SVG file.
pub fn svg(diagram: &Diagram) -> String {
    let last =
        |place: fn(&Shape) -> u32| diagram.shapes.iter().map(place).max().unwrap_or(0);
    let width = last(|it| it.column) * diagram.pitch.0 + diagram.width + 2 * MARGIN;
    let tallest = diagram.shapes.iter().map(height).max().unwrap_or(0);
    let total = last(|it| it.row) * diagram.pitch.1 + tallest + HEAD + MARGIN;
    let mut out = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="fivespot" width="{width}" height="{total}" viewBox="0 0 {width} {total}" role="img" aria-labelledby="diagram-title diagram-desc"><title id="diagram-title">{title}</title><desc id="diagram-desc">{}</desc><style>{}</style><defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path class="soft" d="M0 0l8 4l-8 4z"/></marker></defs><rect class="bg" width="100%" height="100%"/><text class="ink title" x="{MARGIN}" y="26">{title}</text>"#,
        escape(&diagram.description),
        style::sheet(),
        title = escape(&diagram.title),
    );
    for arrow in &diagram.arrows {
        draw_arrow(&mut out, diagram, arrow);
    }
    for shape in &diagram.shapes {
        draw_shape(&mut out, diagram, shape);
    }
    // Labels are drawn last, so that no line crosses them.
    for arrow in &diagram.arrows {
        draw_label(&mut out, diagram, arrow);
    }
    out.push_str("</svg>\n");
    out
}

fn height(shape: &Shape) -> u32 {
    let lines = u32::try_from(shape.lines.len()).unwrap_or(0);
    36 + lines * LINE
}

/// The middle of a box.
fn centre(diagram: &Diagram, shape: &Shape) -> (f64, f64) {
    let tallest = diagram
        .shapes
        .iter()
        .filter(|it| it.row == shape.row)
        .map(height);
    let middle = tallest.max().unwrap_or(0) / 2;
    let x = MARGIN + shape.column * diagram.pitch.0 + diagram.width / 2;
    let y = HEAD + shape.row * diagram.pitch.1 + middle;
    (f64::from(x), f64::from(y))
}

fn draw_shape(out: &mut String, diagram: &Diagram, shape: &Shape) {
    let (x, y) = centre(diagram, shape);
    let (left, top) = (
        x - f64::from(diagram.width) / 2.0,
        y - f64::from(height(shape)) / 2.0,
    );
    let _ = write!(
        out,
        r#"<rect class="box box-line" x="{}" y="{}" width="{}" height="{}" rx="6"/><text class="ink strong" x="{}" y="{}" text-anchor="middle">{}</text>"#,
        px(left),
        px(top),
        diagram.width,
        height(shape),
        px(x),
        px(top + 22.0),
        escape(&shape.name),
    );
    for (line, place) in shape.lines.iter().zip(1_u32..) {
        let _ = write!(
            out,
            r#"<text class="soft small" x="{}" y="{}" text-anchor="middle">{}</text>"#,
            px(x),
            px(top + 22.0 + f64::from(place * LINE)),
            escape(line)
        );
    }
}

/// The ends of an arrow, on the edges of its boxes. An arrow with a counterpart in the other
/// direction is shifted to one side. `None` if one of its boxes does not exist.
fn ends(diagram: &Diagram, arrow: &Arrow) -> Option<[(f64, f64); 2]> {
    let shape = |name: &str| diagram.shapes.iter().find(|shape| shape.name == name);
    let (from, to) = (shape(&arrow.from)?, shape(&arrow.to)?);
    let is_reverse = |it: &Arrow| it.from == arrow.to && it.to == arrow.from;
    let offset = if diagram.arrows.iter().any(is_reverse) {
        ARROW_OFFSET
    } else {
        0.0
    };
    let (begin, end) = (centre(diagram, from), centre(diagram, to));
    let (dx, dy) = (end.0 - begin.0, end.1 - begin.1);
    let length = dx.hypot(dy).max(1.0);
    let (aside_x, aside_y) = (-dy / length * offset, dx / length * offset);
    let half = |shape: &Shape| {
        (
            f64::from(diagram.width) / 2.0,
            f64::from(height(shape)) / 2.0,
        )
    };
    // The share of the line that lies within a box, up to the edge that it crosses first.
    let inside = |(width, height): (f64, f64)| {
        let across = (width - aside_x.abs()) / dx.abs().max(0.001);
        let down = (height - aside_y.abs()) / dy.abs().max(0.001);
        across.min(down).clamp(0.0, 0.5)
    };
    let (start, stop) = (inside(half(from)), inside(half(to)));
    let at = |share: f64| {
        (
            begin.0 + dx * share + aside_x,
            begin.1 + dy * share + aside_y,
        )
    };
    Some([at(start), at(1.0 - stop)])
}

fn draw_arrow(out: &mut String, diagram: &Diagram, arrow: &Arrow) {
    if let Some([begin, end]) = ends(diagram, arrow) {
        let _ = write!(
            out,
            r#"<path class="box-line" fill="none" marker-end="url(#head)" d="M{} {}L{} {}"/>"#,
            px(begin.0),
            px(begin.1),
            px(end.0),
            px(end.1)
        );
    }
}

fn draw_label(out: &mut String, diagram: &Diagram, arrow: &Arrow) {
    let Some([begin, end]) = ends(diagram, arrow).filter(|_| !arrow.lines.is_empty())
    else {
        return;
    };
    let (x, y) = (f64::midpoint(begin.0, end.0), f64::midpoint(begin.1, end.1));
    let longest = arrow
        .lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    let width = f64::from(u32::try_from(longest).unwrap_or(0)) * 6.2 + 6.0;
    let lines = f64::from(u32::try_from(arrow.lines.len()).unwrap_or(0));
    let top = y - lines * 7.0 - 1.0;
    let _ = write!(
        out,
        r#"<rect class="bg" x="{}" y="{}" width="{}" height="{}"/>"#,
        px(x - width / 2.0),
        px(top),
        px(width),
        px(lines * 14.0 + 2.0)
    );
    for (line, place) in arrow.lines.iter().zip(0_u32..) {
        let _ = write!(
            out,
            r#"<text class="ink small" x="{}" y="{}" text-anchor="middle">{}</text>"#,
            px(x),
            px(top + 11.0 + f64::from(place) * 14.0),
            escape(line)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: &str, column: u32) -> Shape {
        Shape {
            name: name.to_owned(),
            lines: Vec::new(),
            column,
            row: 0,
        }
    }

    fn arrow(from: &str, to: &str) -> Arrow {
        Arrow {
            from: from.to_owned(),
            to: to.to_owned(),
            lines: vec![format!("{from} to {to}")],
        }
    }

    #[test]
    fn arrows_run_from_edge_to_edge_next_to_their_counterpart() {
        let mut diagram = Diagram {
            title: "Two".to_owned(),
            description: String::new(),
            shapes: vec![shape("a", 0), shape("b", 1)],
            arrows: vec![arrow("a", "b"), arrow("a", "nowhere")],
            pitch: (200, 100),
            width: 100,
        };
        let [begin, end] = ends(&diagram, &diagram.arrows[0]).unwrap();
        assert_eq!((begin, end), ((120.0, 62.0), (220.0, 62.0)));
        assert_eq!(ends(&diagram, &diagram.arrows[1]), None);
        diagram.arrows.push(arrow("b", "a"));
        let there = ends(&diagram, &diagram.arrows[0]).unwrap();
        let back = ends(&diagram, &diagram.arrows[2]).unwrap();
        assert!(
            (there[0].1 - back[0].1).abs() >= ARROW_OFFSET,
            "{there:?} {back:?}"
        );
        let drawn = svg(&diagram);
        assert!(drawn.contains("b to a") && !drawn.contains("nowhere</text>"));
    }
}
