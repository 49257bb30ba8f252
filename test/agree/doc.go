// SPDX-License-Identifier: Apache-2.0

// Package agree holds wherry's rules against Kubernetes' own, on random objects.
package agree
