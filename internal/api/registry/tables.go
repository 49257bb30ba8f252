// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/table"
)

// TableConvertor gives what kubectl get prints for a kind.
func TableConvertor(k *Kind) rest.TableConvertor { return table.NewConvertor(k.Name) }
