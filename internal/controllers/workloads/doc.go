// SPDX-License-Identifier: Apache-2.0

// Package workloads lists Kubernetes' own controllers that the server runs, a file each: what starts one, and what it
// is made with. They come from k8s.io/kubernetes, unchanged; package ondemand runs them.
//
// Its law: nothing of what they do is written here. Where Kubernetes lets a cluster choose, the choice is the default
// of its own controller manager, except for the number of workers: one machine needs fewer.
package workloads
