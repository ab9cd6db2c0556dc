// The well-known small programs with textures and surfaces, each with the result that a processor computes.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t status = (call);                                                       \
        if (status != cudaSuccess) {                                                       \
            std::printf("%s: %s\n", #call, cudaGetErrorString(status));                    \
            std::exit(3);                                                                  \
        }                                                                                  \
    } while (0)

static const int WIDTH = 40, HEIGHT = 24, LAYERS = 6;

static void tell(const char *name, const std::vector<float> &got, const std::vector<float> &wanted, double tolerance) {
    bool right = got.size() == wanted.size();
    for (size_t i = 0; i < got.size() && right; i++) right = std::fabs(got[i] - wanted[i]) <= tolerance;
    std::printf("%s: %s\n", right ? "right" : "wrong", name);
}

static std::vector<float> picture(int layers) {
    std::vector<float> made(WIDTH * HEIGHT * layers);
    unsigned state = 7;
    for (float &each : made) each = (float)((state = state * 1103515245u + 12345u) >> 16 & 255) / 256;
    return made;
}

static float *output(size_t count) {
    float *made;
    CHECK(cudaMalloc(&made, count * sizeof(float)));
    return made;
}

static std::vector<float> read(float *from, size_t count) {
    std::vector<float> to(count);
    CHECK(cudaMemcpy(to.data(), from, count * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(from));
    return to;
}

static cudaTextureObject_t texture(cudaArray_t array, cudaTextureAddressMode address, cudaTextureFilterMode filter,
                                   bool normalized) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description = {};
    for (auto &each : description.addressMode) each = address;
    description.filterMode = filter;
    description.readMode = cudaReadModeElementType;
    description.normalizedCoords = normalized;
    cudaTextureObject_t made;
    CHECK(cudaCreateTextureObject(&made, &resource, &description, nullptr));
    return made;
}

static dim3 threads() { return dim3(8, 8); }
static dim3 blocks() { return dim3(WIDTH / 8, HEIGHT / 8); }

// -- a picture, turned ------------------------------------------------------------------------------------------------
__global__ void turn(float *to, cudaTextureObject_t from, int width, int height, float angle) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float u = x / (float)width - 0.5f, v = y / (float)height - 0.5f;
    float turned_u = u * cosf(angle) - v * sinf(angle) + 0.5f, turned_v = v * cosf(angle) + u * sinf(angle) + 0.5f;
    to[y * width + x] = tex2D<float>(from, turned_u, turned_v);
}
static float at(const std::vector<float> &from, int x, int y) {
    return from[(y % HEIGHT + HEIGHT) % HEIGHT * WIDTH + (x % WIDTH + WIDTH) % WIDTH];
}
static void rotation() {
    std::vector<float> from = picture(1), wanted;
    float angle = 0.5f;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            float u = x / (float)WIDTH - 0.5f, v = y / (float)HEIGHT - 0.5f;
            float column = (u * cosf(angle) - v * sinf(angle) + 0.5f) * WIDTH - 0.5f;
            float row = (v * cosf(angle) + u * sinf(angle) + 0.5f) * HEIGHT - 0.5f;
            int i = (int)std::floor(column), j = (int)std::floor(row);
            float a = column - i, b = row - j;
            wanted.push_back((1 - a) * (1 - b) * at(from, i, j) + a * (1 - b) * at(from, i + 1, j) +
                             (1 - a) * b * at(from, i, j + 1) + a * b * at(from, i + 1, j + 1));
        }
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &format, WIDTH, HEIGHT));
    size_t row = WIDTH * sizeof(float);
    CHECK(cudaMemcpy2DToArray(array, 0, 0, from.data(), row, row, HEIGHT, cudaMemcpyHostToDevice));
    cudaTextureObject_t object = texture(array, cudaAddressModeWrap, cudaFilterModeLinear, true);
    float *to = output(WIDTH * HEIGHT);
    turn<<<blocks(), threads()>>>(to, object, WIDTH, HEIGHT, angle);
    tell("a picture, turned", read(to, WIDTH * HEIGHT), wanted, 1.0 / 128);
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFreeArray(array));
}

// -- layers, volumes, cubes -------------------------------------------------------------------------------------------
static cudaArray_t array_3d(const std::vector<float> &from, int width, int height, int depth, unsigned flags) {
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t made;
    CHECK(cudaMalloc3DArray(&made, &format, make_cudaExtent(width, height, depth), flags));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr((void *)from.data(), width * sizeof(float), width, height);
    copy.dstArray = made;
    copy.extent = make_cudaExtent(width, height, depth);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    return made;
}
__global__ void negate_layer(float *to, cudaTextureObject_t from, int width, int height, int layer) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float u = (x + 0.5f) / width, v = (y + 0.5f) / height;
    to[(layer * height + y) * width + x] = layer - tex2DLayered<float>(from, u, v, layer);
}
static void layers() {
    std::vector<float> from = picture(LAYERS), wanted;
    for (size_t i = 0; i < from.size(); i++) wanted.push_back(i / (WIDTH * HEIGHT) - from[i]);
    cudaArray_t array = array_3d(from, WIDTH, HEIGHT, LAYERS, cudaArrayLayered);
    cudaTextureObject_t object = texture(array, cudaAddressModeWrap, cudaFilterModeLinear, true);
    float *to = output(from.size());
    for (int layer = 0; layer < LAYERS; layer++)
        negate_layer<<<blocks(), threads()>>>(to, object, WIDTH, HEIGHT, layer);
    tell("layers", read(to, from.size()), wanted, 0);
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFreeArray(array));
}
__global__ void blend(float *to, cudaTextureObject_t from, float z) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    to[y * gridDim.x * blockDim.x + x] = tex3D<float>(from, x + 0.5f, y + 0.5f, z);
}
static void volume() {
    std::vector<float> from = picture(LAYERS), wanted;
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        wanted.push_back(0.75f * from[i + WIDTH * HEIGHT] + 0.25f * from[i + 2 * WIDTH * HEIGHT]);
    cudaArray_t array = array_3d(from, WIDTH, HEIGHT, LAYERS, cudaArrayDefault);
    cudaTextureObject_t object = texture(array, cudaAddressModeClamp, cudaFilterModeLinear, false);
    float *to = output(WIDTH * HEIGHT);
    blend<<<blocks(), threads()>>>(to, object, 1.75f);
    tell("a volume", read(to, WIDTH * HEIGHT), wanted, 1e-6);
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFreeArray(array));
}
__global__ void look(float *to, cudaTextureObject_t from) {
    float axis = threadIdx.x % 2 ? -1.0f : 1.0f;
    unsigned which = threadIdx.x / 2;
    to[threadIdx.x] = texCubemap<float>(from, which == 0 ? axis : 0, which == 1 ? axis : 0, which == 2 ? axis : 0);
}
static void cube() {
    std::vector<float> from, wanted;
    for (int face = 0; face < 6; face++) {
        from.insert(from.end(), 16, (float)face);
        wanted.push_back((float)face);
    }
    cudaArray_t array = array_3d(from, 4, 4, 6, cudaArrayCubemap);
    cudaTextureObject_t object = texture(array, cudaAddressModeClamp, cudaFilterModeLinear, true);
    float *to = output(6);
    look<<<1, 6>>>(to, object);
    tell("a cube", read(to, 6), wanted, 0);
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFreeArray(array));
}

// -- memory that is no array ------------------------------------------------------------------------------------------
__global__ void shift(float *to, cudaTextureObject_t from, int by_x, int by_y) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
    to[y * width + x] = tex2D<float>(from, (x + by_x + 0.5f) / width, (y + by_y + 0.5f) / height);
}
__global__ void sum(float *to, cudaTextureObject_t from, int count) {
    float all = 0;
    for (int i = 0; i < count; i++) {
        uchar4 each = tex1Dfetch<uchar4>(from, i);
        all += each.x + 2 * each.y + 3 * each.z + 4 * each.w;
    }
    *to = all;
}
static void linear_memory() {
    std::vector<float> from = picture(1), wanted(WIDTH * HEIGHT);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) wanted[y * WIDTH + x] = at(from, x + 3, y - 2);
    void *pitched;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    CHECK(cudaMallocPitch(&pitched, &resource.res.pitch2D.pitchInBytes, WIDTH * sizeof(float), HEIGHT));
    size_t pitch = resource.res.pitch2D.pitchInBytes, row = WIDTH * sizeof(float);
    CHECK(cudaMemcpy2D(pitched, pitch, from.data(), row, row, HEIGHT, cudaMemcpyHostToDevice));
    resource.res.pitch2D.devPtr = pitched;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = WIDTH;
    resource.res.pitch2D.height = HEIGHT;
    cudaTextureDesc description = {};
    description.normalizedCoords = 1;  // all else is 0: wrap, point, elements
    cudaTextureObject_t object;
    CHECK(cudaCreateTextureObject(&object, &resource, &description, nullptr));
    float *to = output(WIDTH * HEIGHT);
    shift<<<blocks(), threads()>>>(to, object, 3, -2);
    tell("memory with a pitch", read(to, WIDTH * HEIGHT), wanted, 0);
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFree(pitched));
    unsigned char bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255};
    void *plain;
    CHECK(cudaMalloc(&plain, sizeof bytes));
    CHECK(cudaMemcpy(plain, bytes, sizeof bytes, cudaMemcpyHostToDevice));
    resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = plain;
    resource.res.linear.desc = cudaCreateChannelDesc<uchar4>();
    resource.res.linear.sizeInBytes = sizeof bytes;
    description = {};
    CHECK(cudaCreateTextureObject(&object, &resource, &description, nullptr));
    to = output(1);
    sum<<<1, 1>>>(to, object, 6);  // two more than there are: zeros
    float all = 0;
    for (int i = 0; i < 16; i++) all += (float)(i % 4 + 1) * bytes[i];
    tell("linear memory", read(to, 1), {all}, 0);
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFree(plain));
}

// -- surfaces ---------------------------------------------------------------------------------------------------------
__global__ void write(cudaSurfaceObject_t to, const float *from, int width) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    surf2Dwrite(from[y * width + x] * 2, to, x * sizeof(float), y);
}
__global__ void read_back(float *to, cudaSurfaceObject_t from, int width) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    to[y * width + x] = surf2Dread<float>(from, (x + 1) * sizeof(float), y, cudaBoundaryModeClamp);
}
static void surfaces() {
    std::vector<float> from = picture(1), wanted(WIDTH * HEIGHT);
    for (int i = 0; i < WIDTH * HEIGHT; i++) wanted[i] = 2 * from[i % WIDTH == WIDTH - 1 ? i : i + 1];
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    CHECK(cudaMallocArray(&resource.res.array.array, &format, WIDTH, HEIGHT, cudaArraySurfaceLoadStore));
    cudaSurfaceObject_t object;
    CHECK(cudaCreateSurfaceObject(&object, &resource));
    float *given = output(WIDTH * HEIGHT), *to = output(WIDTH * HEIGHT);
    CHECK(cudaMemcpy(given, from.data(), WIDTH * HEIGHT * sizeof(float), cudaMemcpyHostToDevice));
    write<<<blocks(), threads()>>>(object, given, WIDTH);
    read_back<<<blocks(), threads()>>>(to, object, WIDTH);
    tell("a surface", read(to, WIDTH * HEIGHT), wanted, 0);
    CHECK(cudaDestroySurfaceObject(object));
    CHECK(cudaFreeArray(resource.res.array.array));
    CHECK(cudaFree(given));
}

int main() {
    rotation(), layers(), volume(), cube(), linear_memory(), surfaces();
    return 0;
}
