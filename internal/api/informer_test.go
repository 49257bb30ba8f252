// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// badLine forwards connections and treats them badly: it cuts them after a random time or amount of data, and lets some
// hang first.
type badLine struct {
	to       string
	listener net.Listener
	kind     atomic.Bool // behave from now on
	cuts     atomic.Int32

	mu     sync.Mutex
	open   map[net.Conn]bool
	copies sync.WaitGroup
}

func newBadLine(t *testing.T, to string) *badLine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &badLine{to: to, listener: l, open: map[net.Conn]bool{}}
	b.copies.Go(b.accept)
	t.Cleanup(func() {
		l.Close()
		b.hangUp()
		b.copies.Wait()
	})
	return b
}

func (b *badLine) accept() {
	for {
		from, err := b.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", b.to)
		if err != nil {
			from.Close()
			continue
		}
		b.mu.Lock()
		b.open[from], b.open[to] = true, true
		b.mu.Unlock()
		b.copies.Go(func() { _, _ = io.Copy(to, from); b.cut(from, to) })
		b.copies.Go(func() { b.answer(from, to) })
	}
}

// answer copies what the server says until this connection's time has come.
func (b *badLine) answer(from, to net.Conn) {
	defer b.cut(from, to)
	if b.kind.Load() {
		_, _ = io.Copy(from, to)
		return
	}
	// Long enough for a TLS handshake now and then, short enough for hundreds in seconds.
	end := time.AfterFunc(time.Duration(rand.IntN(40)+5)*time.Millisecond, func() {
		if rand.IntN(4) == 0 {
			_ = to.SetReadDeadline(time.Now()) // it hangs: open, and silent
			time.Sleep(20 * time.Millisecond)
		}
		b.cut(from, to)
	})
	defer end.Stop()
	_, _ = io.CopyN(from, to, int64(rand.IntN(200_000)+3_000))
}

func (b *badLine) cut(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, c := range conns {
		if b.open[c] {
			delete(b.open, c)
			c.Close()
			if i%2 == 0 { // both ends are one connection
				b.cuts.Add(1)
			}
		}
	}
}

func (b *badLine) hangUp() {
	b.mu.Lock()
	var all []net.Conn
	for c := range b.open {
		all = append(all, c)
	}
	b.mu.Unlock()
	b.cut(all...)
}

// compact makes the store forget everything before now.
func compact(t *testing.T, etcd *clientv3.Client) {
	t.Helper()
	r, err := etcd.Get(t.Context(), "/nothing")
	if err == nil {
		_, err = etcd.Compact(t.Context(), r.Header.Revision)
	}
	if err != nil {
		t.Error(err)
	}
}

func etcdClient(t *testing.T) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{shared.etcd.Endpoint()}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// follower is what an informer is made of, with a short back-off: an hour of a bad line takes seconds.
type follower struct {
	t        *testing.T
	store    cache.Indexer
	lists    atomic.Int32 // lists, and watches that begin with one
	versions map[string]uint64
	end      chan struct{}
}

// apply does to the store what an informer does, and checks that no object goes back in time.
func (f *follower) apply(obj any, _ bool) error {
	for _, d := range obj.(cache.Deltas) {
		if gone, ok := d.Object.(cache.DeletedFinalStateUnknown); ok {
			d.Object = gone.Obj
		}
		cm := d.Object.(*corev1.ConfigMap)
		version, err := strconv.ParseUint(cm.ResourceVersion, 10, 64)
		if err != nil {
			f.t.Errorf("version %q", cm.ResourceVersion)
		}
		if d.Type == cache.Deleted {
			_ = f.store.Delete(cm)
			continue
		}
		if version < f.versions[cm.Name] {
			f.t.Errorf("%s went back from version %d to %d", cm.Name, f.versions[cm.Name], version)
		}
		f.versions[cm.Name] = version
		_ = f.store.Update(cm)
		if cm.Name == "the-end" {
			close(f.end)
		}
	}
	return nil
}

// run follows the config maps of a namespace until ctx ends.
func (f *follower) run(ctx context.Context, c kubernetes.Interface, ns string) {
	request := func(o metav1.ListOptions) *rest.Request {
		return c.CoreV1().RESTClient().Get().Namespace(ns).Resource("configmaps").VersionedParams(&o,
			scheme.ParameterCodec).
			MaxRetries(0) // the client would wait a second before each
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			f.lists.Add(1)
			list := &corev1.ConfigMapList{}
			return list, request(o).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if ptr.Deref(o.SendInitialEvents, false) {
				f.lists.Add(1)
			}
			o.Watch = true
			return request(o).Watch(ctx)
		},
	}
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: f.store, EmitDeltaTypeReplaced: true})
	reflector := cache.NewReflectorWithOptions(lw, &corev1.ConfigMap{}, queue, cache.ReflectorOptions{
		Backoff: &wait.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 1, Cap: time.Millisecond},
	})
	var running sync.WaitGroup
	running.Go(func() { reflector.RunWithContext(ctx) })
	running.Go(func() {
		<-ctx.Done()
		queue.Close()
	})
	for {
		if _, err := queue.Pop(f.apply); err != nil {
			break
		}
	}
	running.Wait()
}

// write makes, changes and deletes config maps until the line has been cut often enough.
func write(t *testing.T, c kubernetes.Interface, ns string, writer int, enough func() bool) {
	cms := c.CoreV1().ConfigMaps(ns)
	for i := 0; !enough(); i++ {
		name := fmt.Sprintf("w%d-%d", writer, rand.IntN(20))
		var err error
		switch cm, getErr := cms.Get(t.Context(), name, metav1.GetOptions{}); {
		case getErr != nil:
			_, err = cms.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
				metav1.CreateOptions{})
		case rand.IntN(3) == 0:
			err = cms.Delete(t.Context(), name, metav1.DeleteOptions{})
		default:
			cm.Data = map[string]string{"i": strconv.Itoa(i)}
			_, err = cms.Update(t.Context(), cm, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Errorf("write: %v", err)
			return
		}
	}
}

// An informer behind a line that is cut, hangs, and comes back after the store has forgotten what it missed (410),
// hundreds of times while others write, has in the end what the server has, and no object ever went back in time.
func TestInformerOnABadLine(t *testing.T) {
	const cuts, forgettings = 300, 50
	direct := client(t)
	ns := namespace(t, direct)
	config := adminConfig(t)
	line := newBadLine(t, config.Host[len("https://"):])
	config.Host = "https://" + line.listener.Addr().String()
	config.Timeout = 0
	f := &follower{t: t, store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), versions: map[string]uint64{},
		end: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { f.run(ctx, clientOf(t, config), ns) })
	defer following.Wait()
	defer cancel()

	etcd := etcdClient(t)
	var writing sync.WaitGroup
	enough := func() bool { return line.cuts.Load() >= cuts && f.lists.Load() >= forgettings || t.Failed() }
	for w := range 3 {
		writing.Go(func() { write(t, direct, ns, w, enough) })
	}
	for !enough() {
		line.hangUp() // what is written until it is back, it has missed
		if _, err := direct.CoreV1().ConfigMaps(ns).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "missed-"}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		compact(t, etcd)
		time.Sleep(20 * time.Millisecond) // the line's own time: connections live that long
	}
	writing.Wait()
	line.kind.Store(true)
	line.hangUp()
	if _,
		err := direct.CoreV1().ConfigMaps(ns).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "the-end"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.end:
	case <-time.After(time.Minute):
		t.Fatal("the informer does not hear of the last object")
	}
	t.Logf("%d connections cut, %d lists", line.cuts.Load(), f.lists.Load())
	want, err := direct.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	following.Wait()
	for i := range want.Items {
		cm := &want.Items[i]
		have, ok, _ := f.store.Get(cm)
		if !ok || have.(*corev1.ConfigMap).ResourceVersion != cm.ResourceVersion {
			t.Errorf("%s: the server has %s, the informer %v", cm.Name, cm.ResourceVersion, have)
		}
	}
	if have := len(f.store.ListKeys()); have != len(want.Items) {
		t.Errorf("the informer has %d objects, the server %d", have, len(want.Items))
	}
}
