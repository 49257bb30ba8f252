// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// Name is the controller's in events.
const Name = "node-ipam"

// all is the one name in the queue: networks are decided over all nodes.
const all = "nodes"

// Config says what there is to give.
type Config struct {
	Ranges []netip.Prefix                 // see [Facts]
	Never  func() []netip.Prefix          // likewise, looked at whenever a network is chosen; nil: none
	Avoid  func() ([]netip.Prefix, error) // looked at whenever a network is chosen
	// Own is this machine's node, and OwnNetworks what its pods have.
	Own         string
	OwnNetworks []netip.Prefix
}

// Controller gives nodes their networks.
type Controller struct {
	client kubernetes.Interface
	config Config
	log    *slog.Logger
	loop   *loop.Loop
	nodes  corelisters.NodeLister
	events *loop.Recorder

	// of the loop alone
	gifts map[types.UID][]netip.Prefix // written, and perhaps not seen yet
	shown map[types.UID]string
}

// New makes the controller; the caller starts the factory's informers.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, config Config,
	log *slog.Logger) *Controller {
	c := &Controller{client: client, config: config, log: log, events: loop.NewRecorder(client, Name),
		gifts: map[types.UID][]netip.Prefix{}, shown: map[types.UID]string{}}
	c.loop = loop.New(Name, log, c.sync)
	nodes := factory.Core().V1().Nodes()
	c.nodes = nodes.Lister()
	// A node that goes makes room for others.
	c.loop.Watch(nodes.Informer(), func(any) { c.loop.Add(all) })
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error { return c.events.Run(ctx, c.loop) }

func (c *Controller) sync(ctx context.Context, _ string) error {
	list, err := c.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	f := Facts{Ranges: c.config.Ranges, Own: c.config.Own, OwnNetworks: c.config.OwnNetworks}
	if c.config.Never != nil {
		f.Never = c.config.Never()
	}
	objects, wait := map[types.UID]*corev1.Node{}, false
	for _, n := range list {
		objects[n.UID] = n
		node := c.read(n)
		wait = wait || len(node.Networks) == 0
		f.Nodes = append(f.Nodes, node)
		c.tellMismatch(n, node)
	}
	gone := func(uid types.UID) bool { return objects[uid] == nil }
	maps.DeleteFunc(c.gifts, func(uid types.UID, _ []netip.Prefix) bool { return gone(uid) })
	maps.DeleteFunc(c.shown, func(uid types.UID, _ string) bool { return gone(uid) })
	if !wait {
		return nil
	}
	if f.Avoid, err = c.config.Avoid(); err != nil {
		return err
	}
	var errs []error
	for _, r := range Decide(f) {
		errs = append(errs, c.do(ctx, r, objects[r.Node.UID]))
	}
	return errors.Join(errs...)
}

// read reads a node's object. What it was given counts before it is seen there.
func (c *Controller) read(n *corev1.Node) Node {
	out := Node{Name: n.Name, UID: n.UID}
	for _, text := range n.Spec.PodCIDRs {
		if p, err := netip.ParsePrefix(text); err == nil {
			out.Networks = append(out.Networks, p.Masked())
		}
	}
	if len(out.Networks) == 0 {
		out.Networks = c.gifts[n.UID]
	} else {
		delete(c.gifts, n.UID)
	}
	out.Requested, out.Bad = ParseRequested(n.Annotations[RequestedNetworks])
	return out
}

// do writes what was decided, and reports what was not available.
func (c *Controller) do(ctx context.Context, r Result, n *corev1.Node) error {
	if r.Reason != "" && len(r.Networks) > 0 {
		c.report(n, "PodNetworkTaken", fmt.Sprintf("%s; the node gets %s instead", r.Reason, Join(r.Networks)))
	}
	if r.Problem != "" {
		c.report(n, "CIDRNotAvailable", r.Problem)
		return nil
	}
	var texts []string
	for _, p := range r.Networks {
		texts = append(texts, p.String())
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion},
		"spec":     map[string]any{"podCIDR": texts[0], "podCIDRs": texts},
	})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // its event comes
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	c.gifts[n.UID] = r.Networks
	c.log.Info("a node has a network for its pods", "node", n.Name, "networks", texts)
	return nil
}

// report records an event of a node, once.
func (c *Controller) report(n *corev1.Node, reason, text string) {
	if c.shown[n.UID] == text {
		return
	}
	c.shown[n.UID] = text
	c.events.Event(n, corev1.EventTypeWarning, reason, text)
}

// tellMismatch says that this machine's pods have another network than its node, as when --pod-cidr was changed.
func (c *Controller) tellMismatch(n *corev1.Node, node Node) {
	if n.Name != c.config.Own || len(node.Networks) == 0 || len(c.config.OwnNetworks) == 0 ||
		slices.Equal(node.Networks, c.config.OwnNetworks) {
		return
	}
	text := fmt.Sprintf("pods here have the network %s, other nodes know it by %s and do not reach them: start the server with --pod-cidr %s, or delete this node's object, which is then created again (kubectl delete node %s)",
		Join(c.config.OwnNetworks), Join(node.Networks), Join(node.Networks), n.Name)
	if c.shown[n.UID] != text {
		c.log.Warn(text)
	}
	c.report(n, "PodNetworkTaken", text)
}
