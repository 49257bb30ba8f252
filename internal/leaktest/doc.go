// SPDX-License-Identifier: Apache-2.0

// Package leaktest checks in tests that every goroutine ends: [None] at the end of one test, [Main] after all of a
// package. It asks goleak, which by itself gives goroutines half a second to end.
//
// Its law: a goroutine that ends late, because the machine is busy, is no leak; one that has not ended after [Patience]
// is.
package leaktest
