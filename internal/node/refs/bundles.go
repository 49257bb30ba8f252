// SPDX-License-Identifier: Apache-2.0

package refs

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// bundles are all ClusterTrustBundles there are, watched while some registered pod shows any: which ones a selector
// means is known only from all of them.
type bundles struct {
	s *Sources

	mu     sync.Mutex
	pods   map[types.UID][]*corev1.ClusterTrustBundleProjection
	cancel context.CancelFunc // nil: nobody needs them
	known  chan struct{}      // closed once they are known
	all    map[string]*certificatesv1.ClusterTrustBundle
	err    error // the last trouble while nothing was known
}

func newBundles(s *Sources) *bundles {
	return &bundles{s: s, pods: map[types.UID][]*corev1.ClusterTrustBundleProjection{}}
}

// bundlesOf are the sources of a pod's volumes that show bundles. (Pure.)
func bundlesOf(pod *corev1.Pod) (list []*corev1.ClusterTrustBundleProjection) {
	for i := range pod.Spec.Volumes {
		if p := pod.Spec.Volumes[i].Projected; p != nil {
			for n := range p.Sources {
				if b := p.Sources[n].ClusterTrustBundle; b != nil {
					list = append(list, b)
				}
			}
		}
	}
	return list
}

// register begins the watch with the first pod that needs it.
func (b *bundles) register(pod *corev1.Pod) {
	list := bundlesOf(pod)
	if len(list) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pods[pod.UID] = list
	if b.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(b.s.ctx)
	b.cancel, b.known, b.all, b.err = cancel, make(chan struct{}), nil, nil
	filling := &bundleStore{b, b.known}
	b.s.wg.Go(func() { b.follow(ctx, filling) })
}

// unregister ends it with the last.
func (b *bundles) unregister(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pods, uid)
	if len(b.pods) == 0 && b.cancel != nil {
		b.cancel()
		b.cancel, b.all = nil, nil
	}
}

func (b *bundles) follow(ctx context.Context, to *bundleStore) {
	client := b.s.cfg.Client.CertificatesV1().ClusterTrustBundles()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, o)
			b.trouble(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := client.Watch(ctx, o)
			b.trouble(err)
			return w, err
		},
	}
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, b.s.cfg.Client),
		&certificatesv1.ClusterTrustBundle{}, to, cache.ReflectorOptions{Name: "clustertrustbundles"})
	r.RunWithContext(klog.NewContext(ctx, logr.Discard())) // trouble is returned to whoever asks
}

func (b *bundles) trouble(err error) {
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.err = err
	}
}

// learn takes in a change, and notifies the pods that may show what has changed.
func (b *bundles) learn(from *bundleStore, change func(map[string]*certificatesv1.ClusterTrustBundle)) {
	b.mu.Lock()
	if from.known != b.known { // a watch that was ended meanwhile
		b.mu.Unlock()
		return
	}
	now := maps.Clone(b.all)
	if now == nil {
		now = map[string]*certificatesv1.ClusterTrustBundle{}
	}
	change(now)
	was, first := b.all, b.all == nil
	trouble := b.err
	b.all, b.err = now, nil
	if first {
		close(b.known)
	}
	var pods []types.UID
	for uid, list := range b.pods {
		// Those who wait for the first answer get it; only those who were turned away must be notified.
		if first && trouble != nil || !first && slices.ContainsFunc(list,
			func(p *corev1.ClusterTrustBundleProjection) bool { return differs(p, was, now) }) {
			pods = append(pods, uid)
		}
	}
	b.mu.Unlock()
	for _, uid := range pods {
		b.s.cfg.Changed(uid)
	}
}

// differs reports whether a source may show something else. (Pure.)
func differs(p *corev1.ClusterTrustBundleProjection, was, now map[string]*certificatesv1.ClusterTrustBundle) bool {
	before, err1 := anchors(p, was)
	after, err2 := anchors(p, now)
	return (err1 == nil) != (err2 == nil) || !slices.Equal(before, after)
}

// TrustBundle gives the certificates that a source shows, in PEM: each once, in an order of their own.
func (s *Sources) TrustBundle(ctx context.Context, p *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	b := s.bundles
	b.mu.Lock()
	known, watched := b.known, b.cancel != nil
	b.mu.Unlock()
	if !watched {
		return nil, errors.New("ClusterTrustBundles are not known: the pod is not registered")
	}
	patience := time.NewTimer(s.cfg.Patience)
	defer patience.Stop()
	select {
	case <-known:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-patience.C:
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.err != nil {
			return nil, fmt.Errorf("cannot read ClusterTrustBundles: %w", b.err)
		}
		return nil, fmt.Errorf("cannot read ClusterTrustBundles: no response from the API server in %v", s.cfg.Patience)
	}
	b.mu.Lock()
	all := b.all // never changed, only replaced
	b.mu.Unlock()
	return anchors(p, all)
}

// anchors are the certificates that a source shows of all bundles. (Pure.)
func anchors(p *corev1.ClusterTrustBundleProjection,
	all map[string]*certificatesv1.ClusterTrustBundle) ([]byte, error) {
	optional := p.Optional != nil && *p.Optional
	if p.Name != nil {
		b := all[*p.Name]
		switch {
		case b != nil:
			return normal([]*certificatesv1.ClusterTrustBundle{b}), nil
		case optional:
			return nil, nil
		}
		return nil, fmt.Errorf("while getting ClusterTrustBundle: %w",
			apierrors.NewNotFound(certificatesv1.Resource("clustertrustbundle"), *p.Name))
	}
	if p.SignerName == nil {
		return nil, errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
	}
	selector, err := metav1.LabelSelectorAsSelector(p.LabelSelector) // none at all selects nothing
	if err != nil {
		return nil, fmt.Errorf("while parsing label selector: %w", err)
	}
	var found []*certificatesv1.ClusterTrustBundle
	for _, b := range all {
		if b.Spec.SignerName == *p.SignerName && selector.Matches(labels.Set(b.Labels)) {
			found = append(found, b)
		}
	}
	if len(found) == 0 && !optional {
		return nil, errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")
	}
	return normal(found), nil
}

// normal is the certificates of bundles, each once and without comments, in the order of their bytes: nobody can rely
// on the order in which bundles are found. (Pure.)
func normal(list []*certificatesv1.ClusterTrustBundle) (out []byte) {
	set := map[string]bool{}
	for _, b := range list {
		for rest := []byte(b.Spec.TrustBundle); ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			set[string(block.Bytes)] = true
		}
	}
	for _, der := range slices.Sorted(maps.Keys(set)) {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(der)})...)
	}
	return out
}

// bundleStore is what the reflector fills.
type bundleStore struct {
	b     *bundles
	known chan struct{} // of the watch that it belongs to
}

var _ cache.ReflectorStore = (*bundleStore)(nil)

// Add implements cache.ReflectorStore.
func (st *bundleStore) Add(obj any) error {
	if one, ok := obj.(*certificatesv1.ClusterTrustBundle); ok {
		st.b.learn(st, func(all map[string]*certificatesv1.ClusterTrustBundle) { all[one.Name] = one })
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (st *bundleStore) Update(obj any) error { return st.Add(obj) }

// Delete implements cache.ReflectorStore.
func (st *bundleStore) Delete(obj any) error {
	m, err := meta.Accessor(obj)
	if err == nil {
		st.b.learn(st, func(all map[string]*certificatesv1.ClusterTrustBundle) { delete(all, m.GetName()) })
	}
	return err
}

// Replace implements cache.ReflectorStore.
func (st *bundleStore) Replace(list []any, _ string) error {
	st.b.learn(st, func(all map[string]*certificatesv1.ClusterTrustBundle) {
		clear(all)
		for _, obj := range list {
			if one, ok := obj.(*certificatesv1.ClusterTrustBundle); ok {
				all[one.Name] = one
			}
		}
	})
	return nil
}

// Resync implements cache.ReflectorStore.
func (*bundleStore) Resync() error { return nil }
