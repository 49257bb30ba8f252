// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/node/csi"
	"github.com/wherryproject/wherry/internal/podspec"
)

// newCSI makes what has CSI drivers make volumes; nil without an API server, which has their claims.
func (a *Agent) newCSI() (*csi.Manager, error) {
	if a.standalone() {
		return nil, nil
	}
	return csi.New(csi.Config{NodeName: a.cfg.NodeName, Folder: a.cfg.KubeletFolder, PodsFolder: a.cfg.podsFolder(),
		Boot: a.machine.boot, Client: a.cfg.Client, Token: a.sources.ServiceAccountToken, InUse: a.reportInUse,
		Changed: a.conditionsChanged,
		Retry:   func(uid types.UID) { a.workers.Retry(uid) },
		Event: func(pod *corev1.Pod, kind, reason, message string) {
			a.events.Event(pod, "", kind, reason, message)
		},
		Logger: a.log})
}

// serveCSI takes in CSI drivers until ctx ends. Their containers mount the kubelet's folder and pass on what they mount
// there, which needs a shared mount.
func (a *Agent) serveCSI(ctx context.Context, loops *sync.WaitGroup) {
	if a.csi == nil {
		return
	}
	if err := csi.Share(a.cfg.KubeletFolder); err != nil {
		a.log.Warn("CSI drivers cannot mount volumes for pods", "err", err)
	}
	loops.Go(func() { a.csi.Run(ctx) })
}

// reportInUse has the node's status show which volumes its pods have, at once.
func (a *Agent) reportInUse(ctx context.Context) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	have, err := a.cfg.Client.CoreV1().Nodes().Get(ctx, a.cfg.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if slices.Equal(have.Status.VolumesInUse, a.csi.InUse()) {
		return have, nil
	}
	now := have.DeepCopy()
	now.Status.VolumesInUse = a.csi.InUse()
	return a.patchNode(ctx, have, now, "status")
}

// driverStats is what CSI drivers report of a pod's volumes; done are the volumes whose drivers do so, or ought to.
func (a *Agent) driverStats(ctx context.Context, pod *corev1.Pod) (out []statsapi.VolumeStats, done map[string]bool) {
	done = map[string]bool{}
	if a.csi == nil {
		return nil, done
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		f, ok, err := a.csi.Filling(ctx, pod.UID, v.Name)
		done[v.Name] = ok || err != nil
		if err != nil {
			a.log.Debug("a CSI driver does not say how full a volume is", "pod", pod.Namespace+"/"+pod.Name, "volume",
				v.Name, "err", err)
		}
		if !ok {
			continue
		}
		s := statsapi.VolumeStats{Name: v.Name, FsStats: statsapi.FsStats{Time: metav1.Now(), AvailableBytes: &f.Free,
			CapacityBytes: &f.Bytes, UsedBytes: &f.Used, InodesFree: &f.InodesFree, Inodes: &f.Inodes,
			InodesUsed: &f.InodesUsed}}
		if claim := podspec.ClaimName(pod, v); claim != "" {
			s.PVCRef = &statsapi.PVCReference{Name: claim, Namespace: pod.Namespace}
		}
		out = append(out, s)
	}
	return out, done
}
