// SPDX-License-Identifier: Apache-2.0

// Package progimage builds the image of the test program critest/prog, so that tests on real runtimes need no registry.
package progimage
