// SPDX-License-Identifier: Apache-2.0

// Package image makes Wherry's own image: the program, the authorities by which it trusts registries, and a folder for
// what is temporary; nothing else. [Of] makes one, [Archive] writes it for loading.
//
// Its law: the same program gives the same bytes.
package image
