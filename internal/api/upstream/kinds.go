// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"

	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// Kinds are the rows of the table of kinds.
func Kinds() []*registry.Kind {
	capabilities.Setup(true, 0) // for the process, once: templates may be privileged, as pods may
	return slices.Concat(appsKinds(), batchKinds(), replicationKinds(), volumeKinds(), storageKinds(), policyKinds(),
		autoscalingKinds(), networkingKinds(), certificateKinds(), registrationKinds(), deviceKinds(), migrationKinds())
}
