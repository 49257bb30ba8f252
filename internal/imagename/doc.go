// SPDX-License-Identifier: Apache-2.0

// Package imagename knows the names of images: Parse takes one apart as Docker and every registry read it, and Patterns
// stand for many of them. The node's list of debug images (DC-13) and the image policies of the API server speak the
// same language of patterns, which is this one.
//
// Its law: pure, and a name that is no image's stands for nothing.
//
// Pure.
package imagename
