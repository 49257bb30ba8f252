// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	v1 "k8s.io/api/batch/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // the strategies' own scheme
	cronjob "k8s.io/kubernetes/pkg/registry/batch/cronjob/storage"
	job "k8s.io/kubernetes/pkg/registry/batch/job/storage"

	"github.com/wherryproject/wherry/internal/api/registry"
)

func batchKinds() []*registry.Kind {
	gv := v1.SchemeGroupVersion
	return []*registry.Kind{
		{GV: gv, Name: "Job", Plural: "jobs", Singular: "job", Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := job.NewStorage(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Job.Store, s.Job, s.Status), nil
			}},
		{GV: gv, Name: "CronJob", Plural: "cronjobs", Singular: "cronjob", Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := cronjob.NewREST(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, status), nil
			}},
	}
}
