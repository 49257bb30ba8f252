// SPDX-License-Identifier: Apache-2.0

// Package quantities reads quantities, such as 500m or 64Mi, that come from outside the API: flags, names of resources,
// parameters of requests ([Parse]). Of objects, which the library decodes, it says whether it should ([Endless]): those
// that are sent to the API server, manifests, files of configuration.
//
// Law: reading takes next to no time, whatever the text is. The library's own resource.ParseQuantity takes minutes for
// 1e-100000000.
//
// Pure.
package quantities
