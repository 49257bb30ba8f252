// SPDX-License-Identifier: Apache-2.0

// Package critest checks a container runtime against its contract, and has a fake one.
//
// [Run] is the conformance suite: what the planner and the worker rely on, stated as tests, to be run on the fake and
// on every real runtime. [Fake] is a runtime without containers that passes it: processes are scripts (see package
// script), time is package time's, so a minute of crash loop takes a millisecond inside a testing/synctest bubble.
//
// The fake's law: it does what containerd was observed to do, or what the CRI specifies; where they differ, the suite
// says which. Reach it by [Fake.Client] (direct calls, no connection: right for synctest) or by [Fake.Dial] (gRPC over
// bufconn).
package critest
