// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/http"
	"time"

	"github.com/wherryproject/wherry/internal/configz"
)

// kubeletConfig is what /configz shows under the kubelet's name, in the words of its configuration
// (kubelet.config.k8s.io/v1beta1), for tools that read it there. Only what this agent has is in it.
type kubeletConfig struct {
	FeatureGates          map[string]bool   `json:"featureGates"`
	ClusterDomain         string            `json:"clusterDomain,omitempty"`
	ClusterDNS            []string          `json:"clusterDNS,omitempty"`
	MaxPods               int               `json:"maxPods"`
	PodPidsLimit          int64             `json:"podPidsLimit"`
	EvictionHard          map[string]string `json:"evictionHard"`
	EvictionSoft          map[string]string `json:"evictionSoft,omitempty"`
	EvictionSoftGrace     map[string]string `json:"evictionSoftGracePeriod,omitempty"`
	EvictionReclaim       map[string]string `json:"evictionMinimumReclaim,omitempty"`
	EvictionTransition    string            `json:"evictionPressureTransitionPeriod"`
	EvictionMaxPodGrace   int               `json:"evictionMaxPodGracePeriod"`
	ImageGCHigh           int               `json:"imageGCHighThresholdPercent"`
	ImageGCLow            int               `json:"imageGCLowThresholdPercent"`
	ImageMinimumGCAge     string            `json:"imageMinimumGCAge"`
	ImageMaximumGCAge     string            `json:"imageMaximumGCAge"`
	NodeStatusReport      string            `json:"nodeStatusReportFrequency"`
	NodeLeaseSeconds      int               `json:"nodeLeaseDurationSeconds"`
	ContainerRuntime      string            `json:"containerRuntime"`
	ContainerRuntimeBuild string            `json:"containerRuntimeVersion"`
}

// configz is the page of that name (node's part).
func (a *Agent) configz() http.Handler {
	e := a.cfg.Eviction
	k := kubeletConfig{
		FeatureGates: a.cfg.Features.All(), ClusterDomain: a.cfg.ClusterDomain, ClusterDNS: a.cfg.ClusterDNS,
		MaxPods: a.cfg.MaxPods, PodPidsLimit: a.cfg.podPIDs(), EvictionHard: map[string]string{},
		EvictionSoft: map[string]string{}, EvictionSoftGrace: map[string]string{}, EvictionReclaim: map[string]string{},
		EvictionTransition: e.Transition.String(), EvictionMaxPodGrace: int(e.MaxPodGrace / time.Second),
		ImageGCHigh: e.Images.High, ImageGCLow: e.Images.Low, ImageMinimumGCAge: e.Images.MinAge.String(),
		ImageMaximumGCAge: e.Images.MaxAge.String(),
		NodeStatusReport:  statusEvery.String(), NodeLeaseSeconds: leaseSeconds, ContainerRuntime: a.runtime,
		ContainerRuntimeBuild: a.runtimeVersion,
	}
	for _, t := range e.Thresholds {
		name := string(t.Signal)
		if t.Soft {
			k.EvictionSoft[name], k.EvictionSoftGrace[name] = t.Least.String(), t.Grace.String()
		} else {
			k.EvictionHard[name] = t.Least.String()
		}
		if t.Reclaim.Value > 0 || t.Reclaim.Share > 0 {
			k.EvictionReclaim[name] = t.Reclaim.String()
		}
	}
	return configz.Handler(map[string]any{"kubeletconfig": k,
		"wherry": configz.Component{FeatureGates: a.cfg.Features.All(), Flags: a.cfg.Flags}})
}
