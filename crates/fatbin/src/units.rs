//! The units that are kept or removed as a whole when a container is rewritten: an image, or a concatenated image with
//! its parts.

use crate::container::Container;
use crate::image::Image;

/// One unit of a container.
#[derive(Debug)]
pub(crate) struct Unit<'c, 'a> {
    /// The image in the file.
    pub(crate) outer: &'c Image<'a>,
    /// The numbers in the container of the images that it holds: its own, or those of its parts.
    pub(crate) images: Vec<usize>,
}

/// The units of a container, in order.
pub(crate) fn units<'c, 'a>(container: &'c Container<'a>) -> Vec<Unit<'c, 'a>> {
    let mut units: Vec<Unit<'c, 'a>> = Vec::new();
    // Both lists are in the order of the file, so one pass over each is enough.
    let mut bundles = container.bundles.iter().peekable();
    for (number, image) in container.images.iter().enumerate() {
        match (image.place.part, units.last_mut()) {
            (Some(part), Some(unit)) if part > 0 => unit.images.push(number),
            (Some(_), _) => {
                while bundles
                    .next_if(|bundle| bundle.place.offset < image.place.offset)
                    .is_some()
                {}
                let bundle = bundles
                    .peek()
                    .filter(|b| b.place.offset == image.place.offset);
                units.push(Unit {
                    outer: bundle.copied().unwrap_or(image),
                    images: vec![number],
                });
            }
            (None, _) => units.push(Unit {
                outer: image,
                images: vec![number],
            }),
        }
    }
    units
}
