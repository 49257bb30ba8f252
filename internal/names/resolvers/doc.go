// SPDX-License-Identifier: Apache-2.0

// Package resolvers decides which resolvers the names outside of the cluster are asked of: those of the machine, as its
// resolv.conf has them, or what stands behind systemd-resolved. [Choose] refuses those that would ask back.
//
// Pure.
package resolvers
