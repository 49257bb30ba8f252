// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/wherryproject/wherry/internal/server"
)

// evictionFlags are the kubelet's, by name and form.
func evictionFlags(cmd *cobra.Command, e *server.EvictionOptions) {
	f := cmd.Flags()
	f.Var(cliflag.NewLangleSeparatedMapStringString(&e.Hard), "eviction-hard",
		"thresholds at which pods are evicted immediately, `SIGNAL<AMOUNT,...`, for example memory.available<100Mi,nodefs.available<5%; signals are\nmemory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available; if given, it replaces all the defaults")
	f.Var(cliflag.NewLangleSeparatedMapStringString(&e.Soft), "eviction-soft",
		"thresholds at which pods are evicted once met for their grace period, `SIGNAL<AMOUNT,...`")
	f.Var(cliflag.NewMapStringString(&e.SoftGrace), "eviction-soft-grace-period",
		"grace periods for the soft thresholds, `SIGNAL=DURATION,...`, for example memory.available=1m30s")
	f.Var(cliflag.NewMapStringString(&e.MinimumReclaim), "eviction-minimum-reclaim",
		"how far beyond its threshold a resource must recover, `SIGNAL=AMOUNT,...`, for example nodefs.available=500Mi")
	f.IntVar(&e.MaxPodGrace, "eviction-max-pod-grace-period", e.MaxPodGrace,
		"maximum seconds that a pod evicted for a soft threshold has to stop; below 0: its own grace period")
	f.DurationVar(&e.Transition, "eviction-pressure-transition-period", e.Transition,
		"how long a pressure condition of the node remains after its cause is gone")
	f.IntVar(&e.ImageHigh, "image-gc-high-threshold", e.ImageHigh,
		"percent of disk usage above which unused images that can be pulled again are removed; 100: never")
	f.IntVar(&e.ImageLow, "image-gc-low-threshold", e.ImageLow, "percent of disk usage down to which they are removed")
	f.DurationVar(&e.ImageMinAge, "minimum-image-ttl-duration", e.ImageMinAge,
		"minimum age of an unused image before it is removed")
	f.DurationVar(&e.ImageMaxAge, "maximum-image-ttl-duration", e.ImageMaxAge,
		"time after which an unused image is removed, even if there is enough space; 0: never")
}
