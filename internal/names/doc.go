// SPDX-License-Identifier: Apache-2.0

// Package names answers questions about the names of services and pods, as version 1.1.0 of Kubernetes' specification
// of DNS-based service discovery has them.
//
// [World] is what is known: services, their endpoint slices, pods, as plain data that is updated change by change
// ([Change]). [World.Answer] turns a [Question] into a [Reply]; [Parse] and [Reply.Pack] read and write messages.
//
// The law: it is pure. A name that is not of the cluster is no matter of this package: the reply says so, and somebody
// else asks on. It imports nothing of Kubernetes, because the small program that answers pods is made of it (decision
// 041). A World is for one user at a time, or for several who only read.
//
// Pure.
package names
