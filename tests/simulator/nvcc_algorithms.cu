// Algorithms of Thrust and CUB, each with the result that a processor computes.
#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>

static void tell(const char *name, bool right) { std::printf("%s: %s\n", right ? "right" : "wrong", name); }

static std::vector<int> numbers(size_t count) {
    std::vector<int> made(count);
    unsigned state = 12345;
    for (int &each : made) each = (int)((state = state * 1103515245u + 12345u) >> 16) % 1000 - 300;
    return made;
}

template <typename T>
static bool same(const thrust::device_vector<T> &got, const std::vector<T> &wanted, size_t count) {
    std::vector<T> there(got.size());
    thrust::copy(got.begin(), got.end(), there.begin());
    return count <= there.size() && count == wanted.size() && std::equal(wanted.begin(), wanted.end(), there.begin());
}

struct Affine {
    __host__ __device__ int operator()(int x) const { return 3 * x + 1; }
};
struct IsOdd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};

template <typename Call> static void twice(Call call) {
    size_t bytes = 0;
    call(nullptr, bytes);
    thrust::device_vector<char> place(bytes);
    call(thrust::raw_pointer_cast(place.data()), bytes);
}

int main() {
    std::vector<int> a = numbers(10000), wanted = a;
    thrust::device_vector<int> on_device(a.begin(), a.end()), to(a.size());
    tell("reduce", thrust::reduce(on_device.begin(), on_device.end()) == std::accumulate(a.begin(), a.end(), 0));
    int most = *thrust::max_element(on_device.begin(), on_device.end());
    tell("max_element", most == *std::max_element(a.begin(), a.end()));
    std::transform(a.begin(), a.end(), wanted.begin(), Affine());
    thrust::transform(on_device.begin(), on_device.end(), to.begin(), Affine());
    tell("transform", same(to, wanted, wanted.size()));
    std::partial_sum(a.begin(), a.end(), wanted.begin());
    thrust::inclusive_scan(on_device.begin(), on_device.end(), to.begin());
    tell("inclusive_scan", same(to, wanted, wanted.size()));
    long odd = thrust::count_if(on_device.begin(), on_device.end(), IsOdd());
    tell("count_if", odd == std::count_if(a.begin(), a.end(), IsOdd()));
    wanted.clear();
    std::copy_if(a.begin(), a.end(), std::back_inserter(wanted), IsOdd());
    auto end = thrust::copy_if(on_device.begin(), on_device.end(), to.begin(), IsOdd());
    tell("copy_if", same(to, wanted, (size_t)(end - to.begin())));

    std::vector<int> keys = a, values(a.size());
    std::iota(values.begin(), values.end(), 0);
    thrust::device_vector<int> device_keys = on_device, device_values(values.begin(), values.end());
    std::stable_sort(values.begin(), values.end(), [&](int one, int other) { return a[one] < a[other]; });
    std::stable_sort(keys.begin(), keys.end());
    thrust::stable_sort_by_key(device_keys.begin(), device_keys.end(), device_values.begin());
    tell("stable_sort_by_key", same(device_keys, keys, keys.size()) && same(device_values, values, values.size()));
    device_keys = on_device;
    thrust::sort(device_keys.begin(), device_keys.end(), thrust::greater<int>());
    std::vector<int> falling = a;
    std::sort(falling.begin(), falling.end(), std::greater<int>());
    tell("sort", same(device_keys, falling, falling.size()));
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    thrust::sort(device_keys.begin(), device_keys.end());
    auto last = thrust::unique(device_keys.begin(), device_keys.end());
    tell("unique", same(device_keys, keys, (size_t)(last - device_keys.begin())));

    thrust::device_vector<int> one(1), bins(10);
    const int *from = thrust::raw_pointer_cast(on_device.data());
    int *out = thrust::raw_pointer_cast(to.data()), count = (int)a.size();
    twice([&](void *place, size_t &bytes) {
        cub::DeviceReduce::Min(place, bytes, from, thrust::raw_pointer_cast(one.data()), count);
    });
    tell("DeviceReduce", one[0] == *std::min_element(a.begin(), a.end()));
    twice([&](void *place, size_t &bytes) { cub::DeviceScan::ExclusiveSum(place, bytes, from, out, count); });
    wanted.assign(a.size(), 0);
    for (size_t i = 1; i < a.size(); i++) wanted[i] = wanted[i - 1] + a[i - 1];
    tell("DeviceScan", same(to, wanted, wanted.size()));
    twice([&](void *place, size_t &bytes) { cub::DeviceRadixSort::SortKeys(place, bytes, from, out, count); });
    std::reverse(falling.begin(), falling.end());
    tell("DeviceRadixSort", same(to, falling, falling.size()));
    twice([&](void *place, size_t &bytes) {
        int *to_bins = thrust::raw_pointer_cast(bins.data());
        cub::DeviceHistogram::HistogramEven(place, bytes, from, to_bins, 11, -300, 700, count);
    });
    std::vector<int> counts(10);
    for (int each : a) counts[(each + 300) / 100]++;
    tell("DeviceHistogram", same(bins, counts, counts.size()));
    return 0;
}
