// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/node/record"
	"github.com/wherryproject/wherry/internal/store"
)

// storeMark is the file that says that a data folder has had a store of its own.
func storeMark(dataDir string) string { return filepath.Join(dataDir, "store") }

func (s *Server) podsFolder() string { return filepath.Join(s.opts.DataDir, "pods") }

// checkLost refuses to begin a new store where there was one: the agent would end every pod that is running, since the
// new one has none of them. Before etcd has made anything.
func (s *Server) checkLost() error {
	dir := filepath.Join(s.opts.DataDir, "etcd")
	if _, err := os.Stat(filepath.Join(dir, "member")); !errors.Is(err, os.ErrNotExist) {
		return nil // etcd reports an error itself
	}
	s.parts.freshStore = true
	all, err := s.recorded()
	if err != nil {
		return err
	}
	_, err = os.Stat(storeMark(s.opts.DataDir))
	if len(all) == 0 && (err != nil || s.opts.Forget || s.opts.Adopt) {
		return nil
	}
	return s.refuse(decide(all, nil, s.opts.Adopt, s.opts.Forget), dir+" is gone, and with it all objects")
}

// beginStore makes a new store where one was lost, so that clients which have watched that see no revision again. The
// first one of a folder is etcd's to make.
func (s *Server) beginStore(ctx context.Context, dir string) error {
	all, err := s.recorded()
	if err != nil {
		return err
	}
	if _, err := os.Stat(storeMark(s.opts.DataDir)); err != nil && len(all) == 0 {
		return nil
	}
	return store.Begin(ctx, dir, max(record.Newest(all), readSpaces(s.opts.DataDir).Revision), s.log)
}

// checkRecords compares the pods that this node remembers with those that the store has, and writes back those that
// were forgotten if that was asked for. While the store is the one that they came from, it looks at nothing but their
// records.
func (s *Server) checkRecords(ctx context.Context) error {
	if s.parts.etcd == nil {
		return nil
	}
	all, err := s.recorded()
	if err != nil {
		return err
	}
	suspects := record.Suspects(all, record.Store{ID: s.storeID(), Revision: s.parts.etcd.Revision(),
		Fresh: s.parts.freshStore})
	if len(suspects) > 0 {
		shelf, err := s.openShelf()
		if err != nil {
			return err
		}
		defer shelf.client.Close()
		has, names, err := shelf.pods(ctx)
		if err != nil {
			return err
		}
		answer := decide(record.Unknown(suspects, has), names, s.opts.Adopt, s.opts.Forget)
		if err := s.refuse(answer, "the store in "+filepath.Join(s.opts.DataDir, "etcd")+
			" is a different one, or an older state of it"); err != nil {
			return err
		}
		spaces := readSpaces(s.opts.DataDir)
		for _, r := range answer.adopt {
			if err := shelf.put(ctx, r.Pod, spaces.Labels[r.Pod.Namespace]); err != nil {
				return fmt.Errorf("writing pod %s back into the store: %w", r.Name(), err)
			}
			s.log.Info("pod written back into the store", "pod", r.Name(), "uid", string(r.UID))
		}
	}
	return writeFile(storeMark(s.opts.DataDir), []byte(s.storeID()+"\n"), 0o600)
}

// storeID names the embedded store in records; empty with another API server or an external etcd.
func (s *Server) storeID() string {
	if s.parts.etcd == nil {
		return ""
	}
	return fmt.Sprintf("%016x", s.parts.etcd.Cluster())
}

// refuse is the refusal of a start that would end pods without being asked to; nil if it would not.
func (s *Server) refuse(a answer, why string) error {
	if len(a.open) == 0 && (len(a.adopt)+len(a.forget) > 0 || !s.parts.freshStore) {
		return nil
	}
	kept := backup.List(s.snapshotFolder())
	return &Refusal{Code: ExitStore, What: a.words(why), Do: a.ways(s.opts.DataDir, kept,
		restoredFrom(filepath.Join(s.opts.DataDir, "etcd")))}
}

// shelf is the part of the store that has pods and namespaces, as the API server keeps them.
type shelf struct {
	client *clientv3.Client
	prefix string
	codecs serializer.CodecFactory
}

func (s *Server) openShelf() (*shelf, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.parts.etcd.Endpoint()},
		DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	return &shelf{client, s.opts.EtcdPrefix, serializer.NewCodecFactory(scheme)}, err
}

// pods returns the UIDs and the names of all pods.
func (s *shelf) pods(ctx context.Context) (uids map[types.UID]bool, names map[string]bool, err error) {
	got, err := s.client.Get(ctx, s.prefix+"/pods/", clientv3.WithPrefix())
	if err != nil {
		return nil, nil, err
	}
	uids, names = map[types.UID]bool{}, map[string]bool{}
	for _, kv := range got.Kvs {
		o, _, err := s.codecs.UniversalDeserializer().Decode(kv.Value, nil, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		if p, ok := o.(*corev1.Pod); ok {
			uids[p.UID], names[p.Namespace+"/"+p.Name] = true, true
		}
	}
	return uids, names, nil
}

// put writes a pod as it was, UID and status and all, and its namespace, with these labels, if that is missing. Who
// owned it is gone with the store: with the reference to it, the pod would be collected as garbage.
func (s *shelf) put(ctx context.Context, pod *corev1.Pod, labels map[string]string) error {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = pod.Namespace
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pod.Namespace, UID: types.UID(uuid.NewString()),
		CreationTimestamp: metav1.Now(), Labels: labels},
		Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
	if err := s.create(ctx, path.Join(s.prefix, "namespaces", ns.Name), ns); err != nil {
		return err
	}
	pod = pod.DeepCopy()
	pod.ResourceVersion, pod.OwnerReferences = "", nil
	return s.create(ctx, path.Join(s.prefix, "pods", pod.Namespace, pod.Name), pod)
}

// create writes an object unless there is one.
func (s *shelf) create(ctx context.Context, key string, o runtime.Object) error {
	text, err := runtime.Encode(s.codecs.LegacyCodec(corev1.SchemeGroupVersion), o)
	if err != nil {
		return err
	}
	_, err = s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key,
		string(text))).Commit()
	return err
}
