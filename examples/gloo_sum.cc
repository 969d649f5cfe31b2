// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The Heddle authors
//
// gloo_sum RANK SIZE FOLDER: ranks that find each other by files in FOLDER, and add up their numbers over ibverbs.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <gloo/allreduce_ring.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: %s RANK SIZE FOLDER\n", argv[0]);
		return 2;
	}
	int rank = atoi(argv[1]), size = atoi(argv[2]);
	auto device = gloo::transport::ibverbs::CreateDevice({ "heddle0", 1, 0 });
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
	gloo::rendezvous::FileStore store(argv[3]);
	context->connectFullMesh(store, device);

	std::vector<int> data(1000, rank);
	// Never destroyed: gloo aborts where a buffer goes before the completion of its last send has been read, which nothing tells of.
	auto &sum = *new gloo::AllreduceRing<int>(context, { data.data() }, (int)data.size());
	auto &end = *new gloo::BarrierAllToAll(context);
	sum.run();
	printf("rank %d of %d: the sum is %d\n", rank, size, data[999]);
	fflush(stdout);
	end.run();
	_Exit(data[999] == size * (size - 1) / 2 ? 0 : 1);
}
