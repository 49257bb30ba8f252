// SPDX-License-Identifier: Apache-2.0

// A root is whose files are meant: a container's, by its name, or those of its image, by the name with @image behind it.

const ofImage = "@image";

/** imageOf is the image of a container. */
export function imageOf(container: string): string {
  return container + ofImage;
}

/** isImage reports whether a root is an image. */
export function isImage(root: string): boolean {
  return root.endsWith(ofImage);
}

/** containerOf is the container whose files, or whose image's, a root is. */
export function containerOf(root: string): string {
  return isImage(root) ? root.slice(0, -ofImage.length) : root;
}

/** folderOf is where an image exec has a root. */
export function folderOf(root: string): string {
  return isImage(root) ? `/c/.wherry/${containerOf(root)}/image` : `/c/${root}`;
}

/** rootWords are what a root is called. */
export function rootWords(root: string): string {
  return isImage(root) ? `the image of ${containerOf(root)}` : root;
}

/** besideOf is what a container is compared with that takes the place of another, which was compared with a root. */
export function besideOf(container: string, root: string): string | undefined {
  if (isImage(root)) {
    return imageOf(container);
  }
  return root === container ? undefined : root || undefined;
}
