// SPDX-License-Identifier: Apache-2.0

package api

import (
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/table"
)

// tableConvertor gives what kubectl get prints for a kind.
func tableConvertor(k *kind) rest.TableConvertor { return table.NewConvertor(k.name) }
