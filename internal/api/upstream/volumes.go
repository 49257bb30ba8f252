// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	_ "k8s.io/kubernetes/pkg/apis/storage/install" // the strategies' own scheme
	volume "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	claim "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	csidriver "k8s.io/kubernetes/pkg/registry/storage/csidriver/storage"
	csinode "k8s.io/kubernetes/pkg/registry/storage/csinode/storage"
	capacity "k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity/storage"
	storageclass "k8s.io/kubernetes/pkg/registry/storage/storageclass/storage"
	attachment "k8s.io/kubernetes/pkg/registry/storage/volumeattachment/storage"
	attributesclass "k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass/storage"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// opened is a kind as its storage opened it; status is nil if it has none.
func opened(store *genericregistry.Store, main rest.StandardStorage, status rest.Storage) *registry.Foreign {
	f := &registry.Foreign{Store: store, Main: main}
	if status != nil {
		f.Below = map[string]rest.Storage{"status": status}
	}
	return f
}

// volumeKinds are volumes and the claims to them.
func volumeKinds() []*registry.Kind {
	gv := corev1.SchemeGroupVersion
	return []*registry.Kind{
		{GV: gv, Name: "PersistentVolume", Plural: "persistentvolumes", Singular: "persistentvolume",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := volume.NewREST(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, status), nil
			}},
		{GV: gv, Name: "PersistentVolumeClaim", Plural: "persistentvolumeclaims", Singular: "persistentvolumeclaim",
			Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := claim.NewREST(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, status), nil
			}},
	}
}

// storageKinds say where volumes come from.
func storageKinds() []*registry.Kind {
	gv := storagev1.SchemeGroupVersion
	return []*registry.Kind{
		{GV: gv, Name: "StorageClass", Plural: "storageclasses", Singular: "storageclass",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := storageclass.NewREST(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, nil), nil
			}},
		{GV: gv, Name: "VolumeAttachment", Plural: "volumeattachments", Singular: "volumeattachment",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := attachment.NewStorage(o)
				if err != nil {
					return nil, err
				}
				return opened(s.VolumeAttachment.Store, s.VolumeAttachment, s.Status), nil
			}},
		{GV: gv, Name: "CSIDriver", Plural: "csidrivers", Singular: "csidriver",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := csidriver.NewStorage(o)
				if err != nil {
					return nil, err
				}
				return opened(s.CSIDriver.Store, s.CSIDriver, nil), nil
			}},
		{GV: gv, Name: "CSINode", Plural: "csinodes", Singular: "csinode",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := csinode.NewStorage(o)
				if err != nil {
					return nil, err
				}
				return opened(s.CSINode.Store, s.CSINode, s.Status), nil
			}},
		{GV: gv, Name: "CSIStorageCapacity", Plural: "csistoragecapacities", Singular: "csistoragecapacity",
			Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := capacity.NewStorage(o)
				if err != nil {
					return nil, err
				}
				return opened(s.CSIStorageCapacity.Store, s.CSIStorageCapacity, nil), nil
			}},
		{GV: gv, Name: "VolumeAttributesClass", Plural: "volumeattributesclasses", Singular: "volumeattributesclass",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := attributesclass.NewREST(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, nil), nil
			}},
	}
}
