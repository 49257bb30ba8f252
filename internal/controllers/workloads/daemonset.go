// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/controller/daemon"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// How long a DaemonSet leaves a node alone on which its pods fail, at first and at last: Kubernetes' defaults.
const (
	firstDaemonRetry = time.Second
	lastDaemonRetry  = 15 * time.Minute
)

// daemonSets keeps a pod of each DaemonSet on each node.
func daemonSets() ondemand.Controller {
	return ondemand.Controller{
		Name:   "daemon-set-controller",
		Starts: []ondemand.Start{first(appsv1.SchemeGroupVersion, "daemonsets")},
		Code:   code + "daemon",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			core, apps := k.Informers.Core().V1(), k.Informers.Apps().V1()
			c, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(),
				core.Nodes(), k.Client, flowcontrol.NewBackOff(firstDaemonRetry, lastDaemonRetry))
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}
