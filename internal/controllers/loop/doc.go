// SPDX-License-Identifier: Apache-2.0

// Package loop is the frame of a controller that processes a queue of names: event handlers put names in, workers
// take them out and bring the object with that name into its desired state. A Recorder sends the events of one.
//
// The law: a name is tried at once; a failed one is tried again with increasing delays. One name is never
// processed by two workers. Run returns when its context is done, with every goroutine it started gone.
package loop
