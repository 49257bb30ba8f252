// SPDX-License-Identifier: Apache-2.0

package refs

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

type kind string

const (
	configMapKind kind = "configmap"
	secretKind    kind = "secret"
)

type key struct {
	kind            kind
	namespace, name string
}

// item is one object and what is known of it. All fields but the channel are guarded by Sources.mu.
type item struct {
	pods   map[types.UID]bool // who names it
	cancel context.CancelFunc

	known chan struct{}  // closed once it is known whether the object exists
	obj   runtime.Object // nil: absent
	first string         // the resourceVersion of the first read, until the watch has caught up with it
	err   error          // the last trouble while nothing was known
}

// join adds the pod to the item's, and begins the watch with the first. s.mu is held.
func (s *Sources) join(k key, uid types.UID) {
	it := s.items[k]
	if it == nil {
		ctx, cancel := context.WithCancel(s.ctx)
		it = &item{pods: map[types.UID]bool{}, cancel: cancel, known: make(chan struct{})}
		s.items[k] = it
		s.wg.Go(func() { s.follow(ctx, k, it) })
	}
	it.pods[uid] = true
}

// leave takes the pod off, and ends the watch with the last. s.mu is held.
func (s *Sources) leave(k key, uid types.UID) {
	it := s.items[k]
	if it == nil {
		return
	}
	if delete(it.pods, uid); len(it.pods) == 0 {
		it.cancel()
		delete(s.items, k)
	}
}

// follow reads the object at once, which is the quickest answer there is to a pod that waits to start, and then watches
// it.
func (s *Sources) follow(ctx context.Context, k key, it *item) {
	defer it.cancel()
	obj, err := s.get(ctx, k)
	switch {
	case err == nil:
		s.learn(k, it, obj, "")
		s.mu.Lock()
		it.first = versionOf(obj)
		s.mu.Unlock()
	case apierrors.IsNotFound(err):
		s.learn(k, it, nil, "")
	default:
		s.trouble(k, it, err)
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := s.list(ctx, k, o)
			s.trouble(k, it, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := s.watch(ctx, k, o)
			s.trouble(k, it, err)
			return w, err
		},
	}
	var example runtime.Object = &corev1.ConfigMap{}
	if k.kind == secretKind {
		example = &corev1.Secret{}
	}
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, s.cfg.Client), example,
		&store{s, k, it}, cache.ReflectorOptions{Name: string(k.kind) + " " + k.namespace + "/" + k.name})
	// Trouble is logged by ours; a hundred watches that lose one server must not fill the log.
	r.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// learn takes in a state of the object, nil for absent, as of the resourceVersion ("" if that is not known), and
// notifies the pods. The first read is the newest there is, a watch may begin with something older: that is passed over
// until it has caught up. From then on the watch is believed, even if it goes back: an API server may have been
// restored from a backup.
func (s *Sources) learn(k key, it *item, obj runtime.Object, version string) {
	s.mu.Lock()
	if older(version, it.first) {
		s.mu.Unlock()
		return
	}
	it.first = ""
	first := false
	select {
	case <-it.known:
	default:
		first = true
		close(it.known)
	}
	same := (obj == nil) == (it.obj == nil)
	if same && obj != nil && (versionOf(obj) == "" || versionOf(obj) != versionOf(it.obj)) {
		same = equality.Semantic.DeepEqual(obj, it.obj)
	}
	// Those who wait for the first state get it; only those who got an error must be notified.
	notify := (!first && !same) || (first && it.err != nil)
	it.obj, it.err = obj, nil
	var pods []types.UID
	if notify {
		for uid := range it.pods {
			pods = append(pods, uid)
		}
	}
	s.mu.Unlock()
	for _, uid := range pods {
		s.cfg.Logger.Debug("referenced object changed", "object", string(k.kind)+" "+k.namespace+"/"+k.name, "uid", uid)
		s.cfg.Changed(uid)
	}
}

// older: versions are numbers that grow; one that is no such number is taken as it comes.
func older(version, than string) bool {
	c, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && c < 0
}

func versionOf(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}

// trouble keeps the error for those who wait, if nothing is known yet. What is known stays.
func (s *Sources) trouble(k key, it *item, err error) {
	if err == nil || s.ctx.Err() != nil {
		return
	}
	s.cfg.Logger.Debug("watch of referenced object interrupted", "object", string(k.kind)+" "+k.namespace+"/"+k.name,
		"err", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-it.known:
	default:
		it.err = err
	}
}

// object waits until the object's state is known.
func (s *Sources) object(ctx context.Context, k key) (runtime.Object, error) {
	s.mu.Lock()
	it := s.items[k]
	s.mu.Unlock()
	if it == nil {
		return s.get(ctx, k)
	}
	select {
	case <-it.known: // the usual case; no timer for it
	default:
		patience := time.NewTimer(s.cfg.Patience)
		defer patience.Stop()
		select {
		case <-it.known:
		case <-ctx.Done():
			return nil, s.unknown(k, it, ctx.Err())
		case <-s.ctx.Done():
			return nil, s.unknown(k, it, s.ctx.Err())
		case <-patience.C:
			return nil, s.unknown(k, it, fmt.Errorf("no response from the API server in %v", s.cfg.Patience))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if it.obj == nil {
		return nil, absent(k)
	}
	return it.obj, nil
}

// unknown says why an object cannot be given though it may exist, in the words of the API server's error if there is
// one.
func (s *Sources) unknown(k key, it *item, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it.err != nil {
		err = it.err
	}
	return fmt.Errorf("cannot read %s %q: %w", k.kind, k.name, err)
}

func absent(k key) error {
	return apierrors.NewNotFound(corev1.Resource(string(k.kind)), k.name)
}

// get asks the API server for the object as it is now.
func (s *Sources) get(ctx context.Context, k key) (obj runtime.Object, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	core := s.cfg.Client.CoreV1()
	if k.kind == secretKind {
		obj, err = core.Secrets(k.namespace).Get(ctx, k.name, metav1.GetOptions{})
	} else {
		obj, err = core.ConfigMaps(k.namespace).Get(ctx, k.name, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, absent(k)
	case err != nil:
		return nil, err
	}
	return obj, nil
}

func (s *Sources) list(ctx context.Context, k key, o metav1.ListOptions) (runtime.Object, error) {
	o.FieldSelector = byName(k)
	if k.kind == secretKind {
		return s.cfg.Client.CoreV1().Secrets(k.namespace).List(ctx, o)
	}
	return s.cfg.Client.CoreV1().ConfigMaps(k.namespace).List(ctx, o)
}

func (s *Sources) watch(ctx context.Context, k key, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = byName(k)
	if k.kind == secretKind {
		return s.cfg.Client.CoreV1().Secrets(k.namespace).Watch(ctx, o)
	}
	return s.cfg.Client.CoreV1().ConfigMaps(k.namespace).Watch(ctx, o)
}

func byName(k key) string {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, k.name).String()
}

// store is what the reflector fills: one object.
type store struct {
	s  *Sources
	k  key
	it *item
}

var _ cache.ReflectorStore = (*store)(nil)

func (st *store) Add(obj any) error { return st.set(obj, true) }

func (st *store) Update(obj any) error { return st.set(obj, true) }

func (st *store) Delete(obj any) error { return st.set(obj, false) }

func (st *store) Resync() error { return nil }

// Replace has what a list or the beginning of a watch found.
func (st *store) Replace(list []any, version string) error {
	for _, obj := range list {
		if st.mine(obj) {
			return st.set(obj, true)
		}
	}
	st.s.learn(st.k, st.it, nil, version)
	return nil
}

func (st *store) set(obj any, there bool) error {
	if !st.mine(obj) {
		return nil
	}
	o, ok := obj.(runtime.Object)
	if !ok {
		return fmt.Errorf("a watch of %s %s/%s brought a %T", st.k.kind, st.k.namespace, st.k.name, obj)
	}
	version := versionOf(o)
	if !there {
		o = nil
	}
	st.s.learn(st.k, st.it, o, version)
	return nil
}

// mine does not rely on the server to have heeded the selector.
func (st *store) mine(obj any) bool {
	m, err := meta.Accessor(obj)
	return err == nil && m.GetName() == st.k.name && m.GetNamespace() == st.k.namespace
}
