// SPDX-License-Identifier: Apache-2.0

// Package quantities reads quantities, such as 500m or 64Mi, that come from outside the API: flags, files of
// configuration, names of resources, parameters of requests. What comes in objects is bounded before it is decoded
// (internal/api/filters).
//
// Law: reading takes next to no time, whatever the text is. The library's own resource.ParseQuantity takes minutes for
// 1e-100000000.
//
// Pure.
package quantities
