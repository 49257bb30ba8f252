// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNotInstalled says that a cluster has no debug API.
var errNotInstalled = errors.New("debugging is not installed in this cluster: wherry cluster install")

// look gathers the facts of an installation. Nodes may be kept from the caller.
func (c *connection) look(ctx context.Context) (facts, error) {
	registered, namespace, err := c.registration(ctx)
	if apierrors.IsNotFound(err) {
		return facts{}, errNotInstalled
	}
	if err != nil {
		return facts{}, err
	}
	f := facts{namespace: namespace, available: conditionOf(registered, "Available")}
	none := metav1.GetOptions{}
	if f.deployment, err = c.AppsV1().Deployments(namespace).Get(ctx, apiName, none); apierrors.IsNotFound(err) {
		f.deployment, err = nil, nil
	}
	if err != nil {
		return f, err
	}
	if f.agents, err = c.AppsV1().DaemonSets(namespace).Get(ctx, agentName, none); apierrors.IsNotFound(err) {
		f.agents, err = nil, nil
	}
	if err != nil {
		return f, err
	}
	pods, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: ours()})
	if err != nil {
		return f, err
	}
	f.pods = pods.Items
	f.nodes, err = c.listNodes(ctx)
	return f, err
}
