// SPDX-License-Identifier: Apache-2.0

// Package types registers Kubernetes' internal types, with the conversions and defaults that go with them, for the
// kinds that are served by Kubernetes' own code (docs/decisions/040).
//
// Each function takes the scheme of a server. The internal type of a kind becomes its hub: the form in which the
// library, the strategies and the tables handle it.
//
// Its law: only those kinds. What has rules of ours keeps its v1 type as the hub, and none of Kubernetes' defaults.
//
// Pure.
package types
