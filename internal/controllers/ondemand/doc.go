// SPDX-License-Identifier: Apache-2.0

// Package ondemand runs controllers that are Kubernetes' own: each from the time when there is something for it, and
// again after it has panicked.
//
// A [Controller] is a row: its name, the kinds whose first object starts it, and what makes it. A [Manager] runs all
// rows over one set of shared informers, which are started when the first controller asks for them. [Crashes] catches
// panics in goroutines that a controller has started itself, as far as Kubernetes' libraries let them be caught.
//
// Its law: before its start a controller has no goroutine, no watch and no informer. Each is an API user of its own,
// with the default role of its name. A panic in one is logged and counted by name, ends that controller alone, and it
// is made anew, later and later if it panics again; nothing of the one before stays in the shared informers. It is not
// stopped when the last object goes.
package ondemand
