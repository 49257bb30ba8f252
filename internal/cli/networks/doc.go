// SPDX-License-Identifier: Apache-2.0

// Package networks has the command about who reaches whom: wherry network allowed, which says whether network policies
// let a connection pass, and which of them. It asks the API server, and judges as the node does, with package decide.
//
// Its law: gather reads, judge decides, and nothing is changed.
package networks
