// SPDX-License-Identifier: Apache-2.0

// Package componentstatus serves componentstatuses, the parts of the control plane and how they are: [Storage], of
// which nothing is stored.
//
// Its law: what it says is the case when it is asked.
package componentstatus
