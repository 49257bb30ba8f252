// SPDX-License-Identifier: Apache-2.0

// Package volumes has the command about persistent volumes: wherry volume ls, which shows claims, their volumes, who
// uses them and how full they are. It asks the API server, and through it the nodes.
//
// Its law: gather reads, list decides what is shown, and nothing is changed.
package volumes
