// SPDX-License-Identifier: Apache-2.0

// Package upstream serves kinds by Kubernetes' own code: their types, defaults, strategies, storage and tables
// (docs/decisions/040).
package upstream

import _ "k8s.io/kubernetes/pkg/registry/apps/deployment/storage" // the first of them
