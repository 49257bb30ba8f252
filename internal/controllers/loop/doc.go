// SPDX-License-Identifier: Apache-2.0

// Package loop is the frame of a controller that works off a queue of names: event handlers put names in, workers
// take them out and bring the object with that name to what it should be.
//
// The law: the first try of a name comes at once; a failed one is tried again later and later. One name is never
// worked on by two workers. Run returns when its context is done, with every goroutine it started gone.
package loop
